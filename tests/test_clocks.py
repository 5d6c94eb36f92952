"""Durations do not depend on the clock of the machine, which may be set."""

import ast
import pathlib

from tests import golden

# Functions that record a date, or compare with the dates of files.
DATES = {
  ('agents/envs/episode_log.py', '__init__'),
  ('agents/display.py', '_tell'),
  ('agents/run/log.py', 'write'),
  ('planet/training/running.py', '_find_time'),
}


def test_no_duration_is_a_difference_of_dates():
  """`time.time` is called where a date is recorded, and nowhere else."""
  found = set()
  for package in ('agents', 'planet', 'baselines_her'):
    for path in pathlib.Path(golden.ROOT, package).rglob('*.py'):
      tree = ast.parse(path.read_text())
      for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
          source = ast.unparse(function)
          if 'time.time(' in source:
            name = path.relative_to(golden.ROOT).as_posix()
            found.add((name, function.name))
  assert found == DATES
