"""Flags of the command line."""

import pytest

from agents.run import errors, flags, schema
from agents.tools.tf1 import tf
from tests import processes


class Flags(schema.Settings):
  name: str | None = schema.setting(None, 'Text.')
  count: schema.Positive = schema.setting(3, 'Number of things.')
  rate: schema.Finite = schema.setting(0.5, 'Rate of things.')
  fast: bool = schema.setting(True, 'Whether to hurry.')
  more: list[str] | None = schema.setting(None, 'Can be repeated.')


def parse(*args):
  """Flags that a program of `tf.app.run` sees."""
  seen = []
  main = lambda rest: seen.append(flags.read(tf.app.flags.FLAGS, Flags))
  flags.run('program', 'What it does.', Flags, main, args)
  assert not {*Flags.names()} & {*tf.app.flags.FLAGS}
  (args,) = seen
  return args


def test_values():
  """All spellings of absl; programs do not share their flags."""
  args = parse()
  assert (args.name, args.count, args.rate, args.fast) == (None, 3, 0.5, True)
  args = parse('--name=a b', '--count', '7', '-rate=1e-3', '--nofast')
  assert (args.name, args.count, args.rate) == ('a b', 7, 1e-3)
  assert args.fast is False and parse().fast is True
  assert parse('--fast=false').fast is False
  assert parse('--more=a', '--more=b').more == ['a', 'b']


@pytest.mark.parametrize(
  'args, message',
  [
    (['--cuont=1'], 'Flag --cuont is unknown. Did you mean count?'),
    (['--count=many'], 'count'),
    (['--rate=x'], 'rate'),
    (['--fast=maybe'], 'fast'),
    (['--name'], 'name'),
    (['stray'], "Unexpected argument 'stray'"),
    (['--count=0'], 'Flag --count is 0: input should be greater'),
    (['--rate=inf'], 'Flag --rate is inf: input should be a finite number.'),
  ],
)
def test_errors(args, message):
  with pytest.raises(errors.UsageError) as error:
    parse(*args)
  assert message in str(error.value)


@pytest.mark.parametrize('flag', ['--help', '-h'])
def test_help(capsys, flag):
  with pytest.raises(SystemExit) as end:
    parse('--count=1', flag)
  assert end.value.code == 0
  text = capsys.readouterr().out
  assert 'What it does.' in text and '--rate=FLOAT' in text
  assert 'Number of things. (default 3)' in text


@pytest.mark.parametrize(
  'program, name',
  [('train_ppo', 'ppo-train'), ('visualize_ppo', 'ppo-visualize')],
)
def test_help_is_quick(program, name):
  """It needs no TensorFlow."""
  code = (
    'import sys\n'
    f'from agents import {program}\n'
    'try:\n'
    f'  {program}.run(["--help"])\n'
    'except SystemExit as end:\n'
    '  print("code", end.code, "tensorflow" in sys.modules)'
  )
  output = processes.run_python('-c', code)
  assert f'usage: {name}' in output
  assert output.splitlines()[-1] == 'code 0 False'
