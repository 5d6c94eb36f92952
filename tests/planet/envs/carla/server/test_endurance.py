"""Clients that are killed at any moment, and many resets."""

import contextlib
import random
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip('carla')
psutil = pytest.importorskip('psutil')

from planet.envs.carla.env import CarlaEnv  # noqa: E402
from tests import golden  # noqa: E402

PROGRAM = """
import sys
import numpy as np
from planet.envs.carla.env import CarlaEnv
if __name__ == '__main__':
  while True:
    print('start', flush=True)
    env = CarlaEnv(eval(sys.argv[1]))
    for _ in range(3):
      print('reset', flush=True)
      env.reset()
      print('step', flush=True)
      for _ in range(10):
        env.step(np.float32([0.5, 0]))
    print('close', flush=True)
    env.close()
"""
PHASES = 'start', 'reset', 'step', 'close'


def count_calls(server):
  calls = server.look().calls
  return sum(calls[x] for x in calls if not x.startswith('test.'))


@contextlib.contextmanager
def drive(server):
  """Drive in other processes, all of which are killed at the end at once.

  Yields:
    Function that waits until the client begins a phase.
  """
  program = subprocess.Popen(
    [sys.executable, '-c', PROGRAM, repr(server.config())],
    cwd=golden.ROOT,
    stdout=subprocess.PIPE,
    text=True,
  )

  def wait_for(phase):
    while program.stdout.readline().strip() != phase:
      assert program.poll() is None

  with program.stdout:
    yield wait_for
    # None may notice that another one dies, and clean up.
    parent = psutil.Process(program.pid)
    parent.suspend()
    alive = [*parent.children(recursive=True), parent]
    for process in alive:
      process.suspend()
    for process in alive:
      process.kill()
    program.wait()
    psutil.wait_procs(alive, 10)


@pytest.mark.slow
def test_a_killed_client_does_not_harm_the_next_one(server):
  """After that, the server ticks by itself and is empty."""
  lengths = {}
  with drive(server) as wait_for:
    wait_for('start')
    for phase, following in zip(PHASES, [*PHASES[1:], 'start']):
      before = count_calls(server)
      wait_for(following)
      lengths[phase] = count_calls(server) - before
  generator, frozen = random.Random(0), 0
  for number in range(20):
    phase = PHASES[number % len(PHASES)]
    count = generator.randint(0, lengths[phase])
    with drive(server) as wait_for:
      wait_for(phase)
      limit = count_calls(server) + count
      while count_calls(server) < limit:
        time.sleep(0.001)
    frozen += server.look().synchronous
    with contextlib.closing(CarlaEnv(server.config())) as env:
      env.reset()
      assert 'step_error' not in env.step(np.zeros(2))[3], (phase, count)
    state = server.look()
    assert not state.synchronous and not state.actors, (phase, count)
    time.sleep(0.2)
    assert server.look().frame > state.frame
  # Otherwise they were killed too early or too late.
  assert frozen >= 10


@pytest.mark.slow
def test_no_image_is_lost_in_many_resets(server):
  """Also not the first ones, while the streams are being connected."""
  config = server.config(
    use_sensor='use_2rgb', vehicles=0, pedestrians=0, retries=1
  )
  with contextlib.closing(CarlaEnv(config)) as env:
    for _ in range(200):
      env.reset()
      assert 'step_error' not in env.step(np.zeros(2))[3]
