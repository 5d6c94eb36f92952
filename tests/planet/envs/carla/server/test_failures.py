"""Servers that are slow, late, silent or dead."""

import contextlib
import time
import types

import numpy as np
import pytest

pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla import backend as backend_lib  # noqa: E402
from planet.envs.carla import env_config  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import isolated  # noqa: E402
from planet.envs.collect_dataset import CollectGymDataset  # noqa: E402
from tests import processes  # noqa: E402
from tests.planet.envs.carla.recorded_world import constructor  # noqa: E402


def lose(server, start_server):
  """Another server begins at the same address, with an empty world."""
  # The process of the client is aborted by the library sooner or later.
  server.set(die_at={'tick_cue': 1})
  return lambda: start_server(port=server.port)


def lose_images(server, unused_start):
  server.set(lost_images=10**6)
  return lambda: server.set(lost_images=0)


@pytest.mark.parametrize(
  'fail', [pytest.param(lose, marks=pytest.mark.slow), lose_images]
)
def test_errors_in_the_middle(server, start_server, tmp_path, fail, capsys):
  """No half-written episode; the next reset connects anew."""
  settings = server.config(timeout=3.0, image_timeout=2.0, retry_pause=0.5)
  settings = {k: v for k, v in settings.items() if k not in ('x_res', 'y_res')}
  env = constructor(20, 10, **settings)()
  env = CollectGymDataset(env, str(tmp_path))
  with contextlib.closing(env):
    env.reset()
    env.step(np.zeros(2))
    heal = fail(server, start_server)
    done, count = False, 1
    while not done:
      _, reward, done, info = env.step(np.zeros(2))
      count += 1
      assert reward == 0 and info['step_error']
    # The shortest episode has ten steps.
    assert count == 10
    assert not list(tmp_path.iterdir())
    assert 'Discarded an episode' in capsys.readouterr().out
    heal()
    env.reset()
    done = False
    while not done:
      _, _, done, info = env.step(np.float32([0.5, 0]))
    assert 'step_error' not in info
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_server_that_stays_away(server, caplog):
  """Three attempts, then a sentence."""
  with contextlib.closing(
    CarlaEnv(server.config(timeout=3.0, retries=3))
  ) as env:
    env.reset()
    server.kill()
    assert env.step(np.zeros(2))[3] == {'step_error': True}
    with pytest.raises(
      errors.WorkerDeath, match='Could not start an episode in 3 attem'
    ):
      env.reset()
  assert len([x for x in caplog.records if 'Attempt' in x.getMessage()]) == 3


def test_no_pause_after_the_last_attempt(monkeypatch):
  def fail():
    raise backend_lib.BackendError('It is gone.')

  pauses: list[float] = []
  clock = types.SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
  monkeypatch.setattr(isolated, 'time', clock)
  backend = isolated.IsolatedBackend()
  backend._config = {'retries': 3, 'retry_pause': 7.0}
  backend._start = fail
  with pytest.raises(backend_lib.BackendError, match='3 attempts: It is gone'):
    backend.reset(None)
  assert pauses == [7.0, 7.0]


def test_a_restart_may_take_a_minute():
  config = env_config.complete({})
  assert config['retries'] * config['retry_pause'] == 60


def test_a_tick_that_hangs_is_a_lost_server(server):
  """The library gives up after its timeout; the next episode is as ever."""
  with contextlib.closing(CarlaEnv(server.config(timeout=2.0))) as env:
    env.reset()
    server.set(silent=['tick_cue'])
    began = time.monotonic()
    assert 'step_error' in env.step(np.zeros(2))[3]
    assert time.monotonic() - began < 15
    server.set(silent=[])
    env.reset()
    assert 'step_error' not in env.step(np.zeros(2))[3]
  assert not server.look().synchronous


PROGRAM = """
import sys, time
from agents.envs import external
from planet.envs.carla.env import CarlaEnv
class Env(CarlaEnv):
  client_pid = property(lambda self: self.backend.pid)
if __name__ == '__main__':
  env = external.Async(lambda: Env(eval(sys.argv[1])), 'process')
  env.reset()
  print(env.client_pid, flush=True)
  time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize('ends', ['by itself', 'killed'])
def test_clients_end_with_the_program(server, ends):
  seconds = '0' if ends == 'by itself' else '60'
  program = processes.start_python(
    '-c', PROGRAM, repr(server.config()), seconds
  )
  try:
    pid = int(program.stdout.readline())
    if ends == 'killed':
      program.kill()
    assert not processes.wait_for_end([pid], 15)
    program.wait(15)
  finally:
    program.kill()
    program.stdout.close()
  # Both close their environment.
  state = server.look()
  assert not state.synchronous and not state.actors
