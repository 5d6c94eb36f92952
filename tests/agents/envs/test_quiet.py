"""Output of old libraries, and of the threads beside them."""

import subprocess
import sys

import pytest

from tests import golden

HELD = """
import ctypes, os, sys, threading, warnings
from agents.envs import quiet
from agents.run import streams

began, told = threading.Event(), threading.Event()

def tell():
  assert began.wait(10)
  for number in range(3):
    print('heard', number)
    print('seen', number, file=sys.stderr)
  kept.append(sys.stdout)
  told.set()

kept = []
threading.Thread(target=tell).start()
print('before')
with {context}:
  print('noise', file={stream})
  os.system('echo noise >&2')
  os.write(2, b'noise')
  ctypes.CDLL(None).puts(b'noise')
  began.set()
  assert told.wait(10)
print('after', file=kept[0])
print('after')
"""


@pytest.mark.parametrize(
  'context, stream',
  [
    ('quiet.quietly()', 'sys.stdout'),
    ('quiet.quietly(), streams.hold_back(2)', 'sys.stderr'),
    ('streams.hold_back(1, 2)', 'sys.stderr'),
  ],
)
def test_other_threads_print(context, stream):
  """Neither libraries nor what a buffer holds before get lost or shown.

  Programs that make errors of warnings, as tests do, get none from here.
  """
  code = HELD.format(context=context, stream=stream)
  done = subprocess.run(
    [sys.executable, '-W', 'error', '-c', code],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
    timeout=60,
  )
  lines = ['before', *(f'heard {x}' for x in range(3)), 'after', 'after']
  assert done.stdout.splitlines() == lines, done.stderr
  assert done.stderr.splitlines() == [f'seen {x}' for x in range(3)]
