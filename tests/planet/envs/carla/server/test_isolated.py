"""Clients of CARLA in processes below those of environments."""

import functools

import numpy as np
import pytest

pytest.importorskip('carla')

from agents.envs import wrappers  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import isolated  # noqa: E402
from tests import processes  # noqa: E402
from tests.planet.envs.carla.server import fake_carla  # noqa: E402


def test_an_aborted_client_is_a_lost_server(monkeypatch, tmp_path):
  """The episode fails, not the program; the next one is as ever."""
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  make = functools.partial(fake_carla.make_env, fake_carla.CONFIG)
  env = wrappers.Async(make, 'process')
  pids = []
  for _ in range(2):
    env.reset()
    pids.append(env.client_pid)
    infos = [env.step(np.float32([0.5, 0]))[3] for _ in range(10)]
    assert 'step_error' not in infos[0] and 'step_error' in infos[-1]
  env.reset()
  pids.append(env.client_pid)
  env.close()
  assert len(set(pids)) == 3 and not any(processes.is_running(x) for x in pids)


def test_a_library_that_hangs_is_a_lost_server(monkeypatch, tmp_path):
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  monkeypatch.setattr(isolated, '_TICK_LIMIT', 2.0)
  env = CarlaEnv(
    fake_carla.CONFIG, isolated.IsolatedBackend(fake_carla.make_hanging)
  )
  with processes.time_limit(50):
    for _ in range(2):
      env.reset()
      infos = [env.step(np.float32([0.5, 0]))[3] for _ in range(10)]
      assert 'step_error' not in infos[0] and 'step_error' in infos[-1]
  env.close()


PROGRAM = """
import functools, sys, time
from agents.envs import wrappers
from tests.planet.envs.carla.server import fake_carla
make = functools.partial(fake_carla.make_env, fake_carla.CONFIG)
env = wrappers.Async(make, 'process')
env.reset()
print(env.client_pid, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize('ends', ['by itself', 'killed'])
def test_clients_end_with_the_program(monkeypatch, tmp_path, ends):
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  seconds = '0' if ends == 'by itself' else '60'
  program = processes.start_python('-c', PROGRAM, seconds)
  try:
    pid = int(program.stdout.readline())
    if ends == 'killed':
      program.kill()
    assert not processes.wait_for_end([pid], 15)
    program.wait(15)
  finally:
    program.kill()
    program.stdout.close()
