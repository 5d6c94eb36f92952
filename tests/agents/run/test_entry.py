"""Tests of how programs begin and end."""

import os
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize('lines', [1, 100000])
@pytest.mark.parametrize('unbuffered', ['', '1'])
def test_a_program_ends_silently_when_nobody_reads_it(unbuffered, lines):
  """As `--list | head` does; a short text is only written at the end."""
  reader, writer = os.pipe()
  os.close(reader)
  try:
    result = _run(f'print("line\\n" * {lines})', writer, unbuffered)
  finally:
    os.close(writer)
  assert (result.returncode, result.stderr) == (1, '')


def test_help_ends_silently_when_nobody_reads_it():
  """Parsers print it and raise SystemExit."""
  reader, writer = os.pipe()
  os.close(reader)
  try:
    result = _run('print("help"); sys.exit(0)', writer)
  finally:
    os.close(writer)
  assert result.stderr == ''


def test_other_broken_pipes_are_raised():
  """That of a worker process must not end a training without a word."""
  result = _run('raise BrokenPipeError("worker")', subprocess.PIPE)
  assert 'BrokenPipeError: worker' in result.stderr


def _run(line, output, unbuffered=''):
  """Run a program of one line that writes to a file, and return its end."""
  program = f'import sys\nfrom agents.run import entry\ndef main():\n  {line}\n'
  return subprocess.run(
    [sys.executable, '-c', program + 'sys.exit(entry.run(main))\n'],
    env={
      **os.environ,
      'PYTHONPATH': golden.ROOT,
      'PYTHONUNBUFFERED': unbuffered,
    },
    stdout=output,
    stderr=subprocess.PIPE,
    text=True,
  )
