"""Types of the project, and what a user's type checker knows of its names."""

import subprocess
import sys

from tests import golden

USER = """
import agents
import baselines_her
import planet
"""
NAMES = [
  f'{package}.{name}'
  for package in ('agents', 'baselines_her', 'planet')
  for name in ('train', 'load', 'evaluate')
]


def check_types(*args):
  return subprocess.run(
    [sys.executable, '-m', 'mypy', *args],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
  )


def test_project():
  """Here rather than before all tests, so that both cores are used."""
  found = check_types()
  assert found.returncode == 0, found.stdout + found.stderr


def test_functions_of_the_library(tmp_path):
  path = tmp_path / 'user.py'
  lines = [f'reveal_type({name})' for name in NAMES]
  lines.append('baselines_her.train(seed="one")')
  path.write_text(USER + '\n'.join(lines) + '\n')
  found = check_types(str(path)).stdout
  own = [x for x in found.splitlines() if 'user.py' in x]
  shown = [x for x in own if 'Revealed type is "def (' in x]
  assert len(shown) == len(NAMES), found
  assert 'Argument "seed" to "train" has incompatible type' in own[-1]
