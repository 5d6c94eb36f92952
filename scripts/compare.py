"""Run an original on current TensorFlow and compare it with this project.

Example:

  git clone https://github.com/google-research/planet ~/planet
  python -m scripts.compare ~/planet

Both get the same inputs, weights and noise, each in its own process. Prints a
table and exits with code 1 if a difference exceeds rounding errors, and with 3
if a side could not run, as with other commits of the originals. With --record,
records the numbers in tests/data with the original instead.
"""

import argparse
import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

from agents.run import entry, errors, files
from scripts import machine
from tests.originals.cases import Case

# Where the original is, by the module that compares it.
_SYSTEMS = {
  'ppo': 'the folder that contains pybullet_envs, such as site-packages',
  'planet': 'a clone of google-research/planet',
  'batch_ppo': 'a clone of google-research/batch-ppo',
  'her': 'a clone of openai/baselines',
  'digideep': 'a clone of sharif1093/digideep',
}


class CouldNotRun(errors.Failure):
  """A side did not run to its end, so that nothing was compared."""

  code = 3


def main(argv: Sequence[str] | None = None) -> int:
  """Run the comparison; return 0 if all numbers agree."""
  args = parse_args(argv)
  system = find_system(args.path, *_SYSTEMS)
  with contextlib.ExitStack() as stack:
    folder = args.out or stack.enter_context(tempfile.TemporaryDirectory())
    # Both sides work in it.
    out = files.absolute(folder)
    if os.path.exists(out) and (os.path.isfile(out) or os.listdir(out)):
      raise errors.UsageError(f'{out} is not empty; give --out a new folder.')
    os.makedirs(out, exist_ok=True)
    name = system.__name__.rpartition('.')[2]
    if args.record:
      if name == 'batch_ppo':
        raise errors.UsageError(
          'The numbers of PPO come from the copy in PyBullet; give the folder '
          'that contains pybullet_envs.'
        )
      _run('tests.originals.recording', 'record', name, args.path, out)
      with open(os.path.join(out, 'PROVENANCE.md')) as file_:
        print(file_.read())
      return 0
    for side in ('original', 'ours'):
      print(f'Run {name}: {side}.', flush=True)
      try:
        _run(system.__name__, 'run', side, args.path, out)
      except CouldNotRun as error:
        advice = describe_commit(args.path, system)
        raise CouldNotRun(f'{error} {advice}', error.details) from None
    cases = list(system.compare(out))
  print(_describe(cases))
  return 0 if all(x.same for x in cases) else 1


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='python -m scripts.compare', description=__doc__)
  add = parser.add_argument
  add('path', help=', or '.join(_SYSTEMS.values()))
  text = 'record the numbers in tests/data with the original instead'
  add('--record', action='store_true', help=text)
  add('--out', help='folder for all numbers; default: temporary')
  args = parser.parse_args(argv)
  args.path = files.absolute(args.path)
  return args


def find_system(path: str, *names: str) -> ModuleType:
  """Return the module that compares the original in a folder.

  Args:
    path: Clone of an original, or the folder with `pybullet_envs`.
    *names: Modules to choose from, of `_SYSTEMS`.

  Raises:
    UsageError: If there is no such original.
  """
  for name in names:
    system = importlib.import_module(f'tests.originals.{name}')
    if os.path.exists(os.path.join(path, system.ORIGINAL)):
      return system
  raise errors.UsageError(
    f'{path} contains no original. Give '
    f'{", or ".join(_SYSTEMS[x] for x in names)}.'
  )


def describe_commit(path: str, system: ModuleType) -> str:
  """Return a sentence about the commit to check out; may be empty.

  Args:
    path: Clone of the original.
    system: Module that compares it.
  """
  commit = getattr(system, 'COMMIT', None)
  if not commit:
    return ''
  command = ['git', '-C', path, 'rev-parse', 'HEAD']
  found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
  if found.startswith(commit):
    return ''
  has = f'at {found[:7]}' if found else 'no clone'
  return (
    f'This project is compared with commit {commit}, and {path} is {has}: '
    f'git -C {path} checkout {commit} (after git fetch --unshallow, if the '
    'clone is shallow).'
  )


def _run(module, function, what, path, out):
  """Call a function in a separate process with one thread, to fix rounding."""
  code = (
    f'import sys; sys.path.insert(0, {machine.ROOT!r}); '
    f'from {module} import {function}; '
    f'{function}({what!r}, {path!r}, {out!r})'
  )
  quiet = {'TF_CPP_MIN_LOG_LEVEL': '3', 'OMP_NUM_THREADS': '1'}
  command = [sys.executable, '-W', 'ignore', '-c', code]
  log = os.path.join(out, f'{what}.log')
  with open(log, 'w') as file_:
    done = subprocess.run(
      command,
      env={**os.environ, **quiet},
      cwd=out,
      stdout=file_,
      stderr=file_,
      preexec_fn=machine.end_with_parent,
    )
  if done.returncode:
    with open(log) as file_:
      raise CouldNotRun(f'The {what} failed.', file_.read()[-3000:])


def _describe(cases: Sequence[Case]) -> str:
  """Return the table of all cases."""
  width = max(len(x.name) for x in cases)
  head = f'{"case":{width}}  {"numbers":>8}  {"difference":>10}  {"limit":>7}'
  rows = [
    f'{x.name:{width}}  {x.numbers:8}  {x.difference:10.1e}  {x.limit:7.0e}  '
    f'{"same" if x.same else "OUTSIDE"}'
    for x in cases
  ]
  return '\n'.join([head, *rows])


if __name__ == '__main__':
  sys.exit(entry.run(main))
