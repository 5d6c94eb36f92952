"""Tests of the orderly end of programs."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from agents.run import errors, stopping
from tests import golden, processes

PROGRAM = """
import signal, sys, time
from agents.run import stopping
with stopping.handle_signals('message'):
  print('ready', flush=True)
  for number in map(int, sys.argv[1:]):
    signal.raise_signal(number)
  # The main thread executes no Python code here.
  import threading
  while not stopping.requested():
    time.sleep(0.05)
  print('requested', flush=True)
  time.sleep(20)
"""


@pytest.mark.parametrize('number', stopping.SIGNALS)
def test_signal_is_a_request(number):
  before = signal.getsignal(number)
  with stopping.handle_signals('message'):
    assert not stopping.requested()
    stopping.check()
    os.kill(os.getpid(), number)
    assert stopping._requested.wait(30)
    assert stopping.requested()
    with pytest.raises(stopping.StopRequested):
      stopping.check()
  with stopping.handle_signals('message'):
    assert not stopping.requested()
  assert signal.getsignal(number) == before


@pytest.mark.parametrize('rank, said', [('0', True), ('1', False)])
def test_first_of_several_processes_tells(rank, said, monkeypatch, capsys):
  """A launcher ends the others when one has failed."""
  monkeypatch.setenv('OMPI_COMM_WORLD_SIZE', '2')
  monkeypatch.setenv('OMPI_COMM_WORLD_RANK', rank)
  with stopping.handle_signals('message'):
    signal.raise_signal(signal.SIGTERM)
    assert stopping._requested.wait(30)
  assert ('message' in capsys.readouterr().err) is said


@pytest.mark.parametrize(
  'number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_second_signal_ends_at_once(number, code):
  """Launchers may send the first one twice, as the program does here."""
  program = processes.start_python('-c', PROGRAM, *[str(int(number))] * 2)
  try:
    with processes.time_limit(30):
      assert program.stdout.readline() == 'ready\n'
      assert program.stdout.readline() == 'requested\n'
      time.sleep(1.2)
      assert program.poll() is None
      program.send_signal(number)
      assert program.wait() == code
  finally:
    program.kill()
    program.wait()
    program.stdout.close()


BUSY = """
import resource, time
from agents.run import stopping
limits = int(time.process_time()) + 1, resource.RLIM_INFINITY
with stopping.handle_signals('message'):
  resource.setrlimit(resource.RLIMIT_CPU, limits)
  while not stopping.requested():
    pass
print('saved', flush=True)
"""


def test_soft_limit_of_processor_time():
  """It leaves the time up to the hard limit for saving."""
  assert processes.run_python('-c', BUSY) == 'saved\n'


FORKS = """
import multiprocessing, time
from agents.run import stopping
with stopping.handle_signals('message'):
  fork = multiprocessing.get_context('fork').Process
  stays, ends = (fork(target=time.sleep, args=(9,)) for _ in range(2))
  stays.start()
  ends.start()
  time.sleep(0.2)
  ends.terminate()
  ends.join(5)
  print(ends.exitcode, stopping.requested(), flush=True)
  began = time.monotonic()
print(time.monotonic() - began < 0.5, flush=True)
stays.kill()
"""


def test_forks_end_by_themselves():
  """A fork of an environment keeps its signals, and no socket of ours."""
  found = processes.run_python('-c', FORKS, seconds=60)
  assert found == f'{-signal.SIGTERM} False\nTrue\n'


def test_closed_terminal():
  """It is a request to stop, as often as it is said, unless it is ignored."""
  program = processes.start_python('-c', PROGRAM)
  try:
    with processes.time_limit(30):
      assert program.stdout.readline() == 'ready\n'
      for _ in range(2):
        program.send_signal(signal.SIGHUP)
      assert program.stdout.readline() == 'requested\n'
      time.sleep(0.5)
      assert program.poll() is None
  finally:
    program.kill()
    program.wait()
    program.stdout.close()
  before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
  try:
    with stopping.handle_signals('message'):
      signal.raise_signal(signal.SIGHUP)
      time.sleep(0.2)
      assert not stopping.requested()
  finally:
    signal.signal(signal.SIGHUP, before)


READER = """
import os, signal, sys, time
from agents.run import stopping
with stopping.handle_signals('message'):
  print('ready', flush=True)
  while not stopping.requested():
    time.sleep(0.05)
  time.sleep(0.3)
  print('to the output', flush=True)
  print('last sentence', file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize('terminal', [True, False])
def test_reader_that_ends_from_the_same_signal(terminal):
  """As in `program 2>&1 | tee log`: the terminal has the last sentences."""
  main, side = pty.openpty()
  reader, writer = os.pipe()
  words = (
    f'import os; os.setsid(); os.close(os.open({os.ttyname(side)!r}, 2))\n'
  )
  program = subprocess.Popen(
    [sys.executable, '-c', (words if terminal else '') + READER],
    stdout=writer,
    stderr=writer,
    cwd=golden.ROOT,
    start_new_session=not terminal,
  )
  os.close(writer)
  try:
    with processes.time_limit(30):
      # The whole line, which may come in parts.
      with open(reader) as lines:
        assert lines.readline() == 'ready\n'
      program.send_signal(signal.SIGINT)
      assert program.wait() == 0
      if terminal:
        shown = os.read(main, 1000).decode()
        assert 'to the output' in shown and 'last sentence' in shown
  finally:
    program.kill()
    program.wait()
    os.close(main)
    os.close(side)


@pytest.mark.parametrize('closed', ['2>&-', '<&- >&- 2>&-', '>&-'])
def test_closed_streams(closed, tmp_path):
  """Their numbers are not those of files that are opened later."""
  code = (
    'import agents, os, sys\n'
    "with open('file', 'w') as file_:\n"
    '  assert file_.fileno() > 2\n'
    '  for stream in (sys.stdout, sys.stderr):\n'
    "    print('words', file=stream, flush=True)\n"
    '  os.write(2, b"more")\n'
    'from agents.envs import quiet\n'
    'with quiet.quietly():\n'
    '  pass\n'
  )
  line = f'PYTHONPATH={golden.ROOT} "$0" -c "$1" {closed}'
  subprocess.run(
    ['sh', '-c', line, sys.executable, code],
    cwd=tmp_path,
    check=True,
    capture_output=True,
  )
  assert (tmp_path / 'file').read_text() == ''


def test_suggestions():
  known = ['tasks', 'test_steps', 'loader', 'tasks']
  assert errors.suggest('taks', known) == 'Did you mean tasks?'
  assert errors.suggest('zzz', known) == (
    'Known names: loader, tasks, test_steps.'
  )
