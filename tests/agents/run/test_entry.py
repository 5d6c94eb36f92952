"""Tests of how programs begin and end."""

import errno
import os
import subprocess
import sys
import time

import pytest

from agents.run import entry, errors, files, stopping
from tests import golden

MPIRUN = os.path.join(os.path.dirname(sys.executable), 'mpirun')
ROOT = {
  'OMPI_ALLOW_RUN_AS_ROOT': '1',
  'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
}

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


def test_characters_that_the_output_does_not_know(monkeypatch):
  """Of a path, for example; standard error escapes them anyway."""
  monkeypatch.setenv('PYTHONIOENCODING', 'ascii')
  result = _run(r'print("\u00fc")', subprocess.PIPE)
  assert (result.stdout, result.stderr) == ('\\xfc\n', '')


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


def fail(error):
  raise error


NO_PLACE = "No usable temporary directory found in ['/tmp']"


@pytest.mark.parametrize(
  'error, code, words',
  [
    (errors.UsageError('Do it so.'), 2, 'Error: Do it so.\n'),
    (errors.NotFinite('Not a number.'), 1, 'Error: Not a number.\n'),
    (errors.EnvError('It fails.', 'traceback'), 1, 'It fails.\ntraceback\n'),
    (errors.WorkerDeath('Killed.'), 1, 'Killed. Repeat the command'),
    (OSError(errno.ENOSPC, 'No space left on device'), 1, 'disk is full'),
    (RuntimeError('x; No space left on device'), 1, 'disk is full'),
    (OSError(errno.EFBIG, 'File too large'), 1, 'disk is full'),
    (RuntimeError('x; File too large'), 1, 'ulimit -f'),
    (OSError(errno.EIO, 'Input/output error', 'f'), 1, 'error (f)'),
    (OSError(errno.ENOTCONN, 'Not connected', 'f'), 1, 'connected (f)'),
    (OSError(errno.EBUSY, 'Busy', 'f'), 1, 'busy (f). Repeat the command'),
    (OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), 1, 'no more processes'),
    (ImportError('x: failed to map segment from shared object'), 1, 'memory'),
    (RuntimeError("can't start new thread"), 1, 'fewer environments'),
    (OSError(errno.EISDIR, 'Is a directory', 'f'), 1, '(f). Move it away.'),
    (OSError(errno.EEXIST, 'File exists', 'f'), 1, '(f). Move it away.'),
    (
      OSError(errno.ENOTDIR, 'Not a directory', f'{__file__}/best/x'),
      1,
      'test_entry.py). Move it away.',
    ),
    (OSError(errno.EISDIR, 'Is a directory', '.x', None, 'f'), 1, '(f). Move'),
    (FileNotFoundError(2, NO_PLACE), 1, 'TMPDIR'),
    (MemoryError('Unable to allocate 7 TiB'), 1, 'batch size. Unable to'),
    (RuntimeError('x:\nOOM when allocating y\n[[z]]'), 1, 'size. OOM'),
    (ValueError('Cannot parse tensor from proto: x'), 1, 'not enough memory'),
    (ValueError('x (more than 2**63 - 1 entries)'), 1, 'not enough memory'),
    (stopping.StopRequested(), 0, 'Stopped.'),
  ],
)
def test_exit_codes(capsys, error, code, words):
  """Each of these is a sentence; what is not foreseen, a traceback."""
  assert entry.run(lambda: fail(error)) == code
  said = capsys.readouterr().err
  assert words in said and 'Traceback' not in said
  with pytest.raises(KeyError):
    entry.run(lambda: fail(KeyError('bug')))
  assert entry.run(lambda: 3) == 3 and entry.run(lambda: 'text') == 0


def test_current_folder_that_is_gone(tmp_path, monkeypatch, capsys):
  """Paths in it have no meaning then."""
  place = tmp_path / 'here'
  place.mkdir()
  monkeypatch.chdir(place)
  place.rmdir()
  monkeypatch.setattr(sys, 'path', [x for x in sys.path if x])
  assert entry.run(lambda: files.absolute('logs')) == 1
  # Some libraries fail in the current folder of the search path.
  assert '' not in sys.path
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('Error: The current folder is not there')
  assert entry.run(lambda: files.absolute(tmp_path)) == 0


def test_files_of_tensorflow(tmp_path, capsys):
  """Its errors are sentences, too; each names the file."""
  from agents.tools.tf1 import tf

  (tmp_path / 'train').touch()
  (tmp_path / 'checkpoint' / 'x').mkdir(parents=True)
  folder = str(tmp_path / 'train')
  for write, name in (
    (lambda: tf.summary.FileWriter(folder), 'train'),
    (
      lambda: tf.train.update_checkpoint_state(str(tmp_path), 'x'),
      'checkpoint',
    ),
  ):
    assert entry.run(write) == 1
    said = capsys.readouterr().err
    assert f' directory ({tmp_path / name}). Move it away.' in said


RANKS = """
import sys, time
from agents.run import entry, errors, mpi
comm = mpi.world()
def main():
  if comm.Get_rank() in {ranks}:
    raise {error}
  comm.Barrier()
sys.exit(entry.run(main))
"""


@pytest.mark.skipif(not os.path.exists(MPIRUN), reason='there is no mpirun')
@pytest.mark.parametrize(
  'ranks, error, code, words',
  [
    ([0, 1], 'errors.UsageError("Do it so.")', 2, 'Error: Do it so.'),
    ([1], 'errors.EnvError("It fails.")', 1, 'Rank 1: Error: It fails.'),
    ([0], 'KeyError("bug")', 1, "KeyError: 'bug'"),
    ([1], 'SystemExit(5)', 5, ''),
  ],
)
def test_all_ranks_end_together(ranks, error, code, words):
  """With the exit code, and one sentence of the rank that has it."""
  program = RANKS.format(ranks=ranks, error=error)
  began = time.monotonic()
  result = subprocess.run(
    [MPIRUN, '-n', '2', '--oversubscribe', sys.executable, '-c', program],
    env={**os.environ, 'PYTHONPATH': golden.ROOT, **ROOT},
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert result.returncode == code, result.stderr
  assert not words or result.stderr.count(words) == 1
  assert time.monotonic() - began < 40
