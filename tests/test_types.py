"""What type checkers know of the names that packages import lazily."""

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


def test_functions_of_the_library(tmp_path):
  path = tmp_path / 'user.py'
  lines = [f'reveal_type({name})' for name in NAMES]
  lines.append('baselines_her.train(seed="one")')
  path.write_text(USER + '\n'.join(lines) + '\n')
  found = subprocess.run(
    [sys.executable, '-m', 'mypy', str(path)],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
  ).stdout
  own = [x for x in found.splitlines() if 'user.py' in x]
  shown = [x for x in own if 'Revealed type is "def (' in x]
  assert len(shown) == len(NAMES), found
  assert 'Argument "seed" to "train" has incompatible type' in own[-1]
