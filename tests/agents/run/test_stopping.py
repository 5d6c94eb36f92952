"""Tests of the orderly end of programs."""

import os
import signal
import time

import pytest

from agents.run import errors, stopping
from tests import processes

PROGRAM = """
import signal, sys, time
from agents.run import stopping
with stopping.handle_signals('message'):
  print('ready', flush=True)
  for _ in range(int(sys.argv[1])):
    signal.raise_signal(signal.SIGTERM)
  # The main thread executes no Python code here.
  import threading
  while not stopping.requested():
    time.sleep(0.05)
  print('requested', flush=True)
  time.sleep(20)
"""


def test_signal_is_a_request():
  before = [signal.getsignal(x) for x in (signal.SIGTERM, signal.SIGINT)]
  with stopping.handle_signals('message'):
    assert not stopping.requested()
    stopping.check()
    os.kill(os.getpid(), signal.SIGTERM)
    assert stopping._requested.wait(30)
    assert stopping.requested()
    with pytest.raises(stopping.StopRequested):
      stopping.check()
  with stopping.handle_signals('message'):
    assert not stopping.requested()
  after = [signal.getsignal(x) for x in (signal.SIGTERM, signal.SIGINT)]
  assert after == before


@pytest.mark.parametrize(
  'number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_second_signal_ends_at_once(number, code):
  """Launchers may send the first SIGTERM twice, as the program does here."""
  count = 2 if number == signal.SIGTERM else 0
  program = processes.start_python('-c', PROGRAM, str(count))
  try:
    with processes.time_limit(30):
      assert program.stdout.readline() == 'ready\n'
      if not count:
        program.send_signal(number)
      assert program.stdout.readline() == 'requested\n'
      if count:
        time.sleep(1.2)
        assert program.poll() is None
      program.send_signal(number)
      assert program.wait() == code
  finally:
    program.kill()
    program.wait()
    program.stdout.close()


def test_suggestions():
  known = ['tasks', 'test_steps', 'loader', 'tasks']
  assert errors.suggest('taks', known) == 'Did you mean tasks?'
  assert errors.suggest('zzz', known) == (
    'Known names: loader, tasks, test_steps.'
  )
