"""Tests of the orderly end of programs."""

import os
import signal
import time

import pytest

from agents.run import entry, errors, stopping
from tests import processes

PROGRAM = """
import sys, time
from agents.run import stopping
with stopping.handle_signals('message'):
  print('ready', flush=True)
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
    time.sleep(0.2)
    assert stopping.requested()
    with pytest.raises(stopping.StopRequested):
      stopping.check()
  with stopping.handle_signals('message'):
    assert not stopping.requested()
  after = [signal.getsignal(x) for x in (signal.SIGTERM, signal.SIGINT)]
  assert after == before


def test_second_interrupt_ends_at_once():
  program = processes.start_python('-c', PROGRAM)
  try:
    with processes.time_limit(30):
      assert program.stdout.readline() == 'ready\n'
      program.send_signal(signal.SIGINT)
      assert program.stdout.readline() == 'requested\n'
      program.send_signal(signal.SIGINT)
      assert program.wait() == 130
  finally:
    program.kill()
    program.wait()
    program.stdout.close()


def fail(error):
  raise error


def test_exit_codes(capsys):
  assert entry.run(lambda: None) == 0
  assert entry.run(lambda: fail(stopping.StopRequested())) == 0
  assert entry.run(lambda: fail(errors.UsageError('Do it so.'))) == 2
  assert capsys.readouterr().err.endswith('Error: Do it so.\n')
  with pytest.raises(KeyError):
    entry.run(lambda: fail(KeyError('bug')))


def test_suggestions():
  known = ['tasks', 'test_steps', 'loader', 'tasks']
  assert errors.suggest('taks', known) == 'Did you mean tasks?'
  assert errors.suggest('zzz', known) == (
    'Known are: loader, tasks, test_steps.'
  )
