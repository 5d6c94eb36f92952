"""Flags of the command line."""

import absl.flags
import pytest

from agents.run import entry, errors, flags, schema
from agents.tools import lazy_tf, tf1
from agents.tools.lazy_tf import tf
from tests import processes


def define(flag_values):
  into = {'flag_values': flag_values}
  tf.app.flags.DEFINE_string('name', None, 'Text.', **into)
  tf.app.flags.DEFINE_integer('count', 3, 'Number of things.', **into)
  tf.app.flags.DEFINE_float('rate', 0.5, 'Rate of things.', **into)
  tf.app.flags.DEFINE_boolean('fast', True, 'Whether to hurry.', **into)
  tf.app.flags.DEFINE_multi_string('more', None, 'Can be repeated.', **into)
  tf.app.flags.DEFINE(flags.Literal(), 'size', None, '', **into)
  flags.limit('count', schema.Positive, **into)
  flags.limit('rate', schema.Finite, **into)


NAMES = {'name', 'count', 'rate', 'fast', 'more', 'size'}


def parse(*args, run=tf.app.run):
  """Flags that a program of `tf.app.run` sees."""
  seen = []

  def main(rest):
    assert rest == ['program']
    seen.append(flags.read(define, tf.app.flags.FLAGS))

  def start():
    with flags.parsed('program', 'What it does.', define, args) as words:
      run(main, words)

  try:
    start()
  except SystemExit as end:
    if end.code is not None:
      raise
  finally:
    assert not NAMES & {*tf.app.flags.FLAGS}
  (args,) = seen
  return args


@pytest.mark.parametrize('run', [tf.app.run, tf1.tf.app.run])
def test_values(run):
  """All spellings of absl; programs do not share their flags."""
  args = parse(run=run)
  assert (args.name, args.count, args.rate, args.fast) == (None, 3, 0.5, True)
  words = '--name=a b', '--count', '7', '-rate=1e-3', '--nofast'
  args = parse(*words, run=run)
  assert (args.name, args.count, args.rate) == ('a b', 7, 1e-3)
  assert args.fast is False and parse().fast is True
  assert parse('--fast=false').fast is False
  assert parse('--more=a', '--more=b').more == ['a', 'b']
  assert parse('--size=None')['size'].present and not parse()['size'].present
  assert parse('--size', '[1, 2]').size == [1, 2]
  assert parse('--size=ab').size == 'ab'


def test_one_registry():
  """Flags of the lazy `tf` are those of TensorFlow, and the other way."""
  here, there = tf.app.flags, tf1.tf.app.flags
  assert here.FLAGS is absl.flags.FLAGS
  try:
    here.DEFINE_integer('flag_of_absl', 1, 'A flag.')
    there.DEFINE_integer('flag_of_tensorflow', 2, 'Another flag.')
    for name in ('flag_of_absl', 'flag_of_tensorflow'):
      assert here.FLAGS[name] is there.FLAGS[name]
    with pytest.raises(here.DuplicateFlagError):
      there.DEFINE_string('flag_of_absl', None, 'The same name.')
    there.FLAGS(['program', '--flag_of_absl=5', '--flag_of_tensorflow=6'])
    assert here.FLAGS.flag_of_absl == 5 and here.FLAGS.flag_of_tensorflow == 6
  finally:
    for name in ('flag_of_absl', 'flag_of_tensorflow'):
      if name in here.FLAGS:
        delattr(here.FLAGS, name)
  assert tf.Session is tf1.tf.Session and lazy_tf.tf.app is tf.app


@pytest.mark.parametrize('run', [tf.app.run, tf1.tf.app.run])
def test_main_program(monkeypatch, run):
  """Without arguments, `tf.app.run` calls `main`, with words it cannot read."""
  seen = []
  code = type('Main', (), {'main': staticmethod(seen.append)})
  monkeypatch.setitem(__import__('sys').modules, '__main__', code)
  monkeypatch.setattr('sys.argv', ['program', '--nobody=1'])
  assert entry.run(run) == 0
  assert seen == [['program', '--nobody=1']]


def test_flags_of_a_notebook():
  """Its own defaults count, and are checked, too."""
  theirs = absl.flags.FlagValues()
  tf.app.flags.DEFINE_integer('count', 5, 'Other.', flag_values=theirs)
  assert flags.read(define, theirs).count == 5
  assert flags.read(define, theirs).rate == 0.5
  assert flags.read(define).count == 3
  theirs['count'].value = 0
  with pytest.raises(errors.UsageError, match='Flag --count is 0'):
    flags.read(define, theirs)


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
    (['--size', '--count=2'], 'size.*the value is missing'),
  ],
)
def test_errors(args, message):
  with pytest.raises(errors.UsageError, match=message):
    parse(*args)


@pytest.mark.parametrize('flag', ['--help', '-h'])
def test_help(capsys, flag):
  with pytest.raises(SystemExit) as end:
    parse('--count=1', flag)
  assert end.value.code == 0
  text = capsys.readouterr().out
  assert 'What it does.' in text and '--rate=FLOAT' in text
  assert 'Number of things. (default 3)' in text
  assert '--more=LIST\n      Can be repeated.\n' in text and 'size' not in text


@pytest.mark.parametrize(
  'module, name, first',
  [
    ('agents.train_ppo', 'ppo-train', []),
    ('agents.visualize_ppo', 'ppo-visualize', []),
    ('baselines_her.run', 'her-train', ['program']),
  ],
)
def test_help_is_quick(module, name, first):
  """It needs no TensorFlow."""
  code = (
    'import importlib, sys\n'
    f'program = importlib.import_module({module!r})\n'
    'try:\n'
    f'  program.run([*{first}, "--help"])\n'
    'except SystemExit as end:\n'
    '  print("code", end.code, "tensorflow" in sys.modules)'
  )
  output = processes.run_python('-c', code)
  assert f'usage: {name}' in output
  assert output.splitlines()[-1] == 'code 0 False'


def test_programs_beside_each_other():
  """Importing defines no flags, and each program has its own."""
  code = (
    'import absl.flags, sys\n'
    'from agents import train_ppo, visualize_ppo\n'
    'from baselines_her import run\n'
    'from planet.scripts import train\n'
    'assert not {"logdir", "seed", "gamma"} & {*absl.flags.FLAGS}\n'
    'assert train_ppo.FLAGS is run.FLAGS is visualize_ppo.FLAGS\n'
    'codes = [\n'
    '  train_ppo.run(["--seed=-1"]), visualize_ppo.run(["--logdir=nobody"]),\n'
    '  run.run(["x", "--gamma=2"]), run.run(["x", "--gamma=3"]),\n'
    '  train.run(["--logdir=x", "--config=nobody"]),\n'
    ']\n'
    'assert not {"logdir", "seed", "gamma"} & {*absl.flags.FLAGS}\n'
    'print(codes, "tensorflow" in sys.modules)'
  )
  assert processes.run_python('-c', code).strip() == '[2, 2, 2, 2, 2] False'
