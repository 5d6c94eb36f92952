"""Tests of how programs begin and end."""

import os
import subprocess
import sys

from tests import golden

PROGRAM = """
import sys
from agents.run import entry
from agents.run import errors

def main():
  import mine
  raise errors.UsageError(mine.TEXT)

sys.exit(entry.run(main))
"""


def test_programs_find_modules_in_the_current_folder(tmp_path):
  """Those that pip has installed lie elsewhere; nothing is hidden."""
  for name in ('bin', 'place'):
    (tmp_path / name).mkdir()
  (tmp_path / 'bin' / 'program').write_text(PROGRAM)
  (tmp_path / 'place' / 'mine.py').write_text('TEXT = "This is mine."\n')
  (tmp_path / 'place' / 'agents.py').write_text('raise SystemExit(5)\n')
  result = subprocess.run(
    [sys.executable, str(tmp_path / 'bin' / 'program')],
    cwd=tmp_path / 'place',
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    capture_output=True,
    text=True,
  )
  assert result.stderr == 'Error: This is mine.\n'
  assert result.returncode == 2
