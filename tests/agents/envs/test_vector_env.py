"""Batches with wrappers for all environments at once."""

import errno
import functools
import multiprocessing
import os
import signal

import numpy as np
import pytest

from agents.envs import adapters, spaces
from agents.envs.batch_env import BatchEnv
from agents.run import errors
from agents.tools import wrappers
from agents.tools.continuous import ScaledVectorEnv
from tests import processes, scripted_envs
from tests.agents.envs import odd_gymnasium

both = pytest.mark.parametrize('workers', [0, 2])


@pytest.fixture
def start():
  """Function that starts a batch, which is closed in the end."""
  envs = []

  def start_batch(constructors, *args):
    envs.append(ScaledVectorEnv(constructors, *args))
    return envs[-1]

  with processes.time_limit(60):
    yield start_batch
    for env in envs:
      env.close()


def wrap(env):
  env = wrappers.RangeNormalize(wrappers.LimitDuration(env, 4))
  return wrappers.ConvertTo32Bit(wrappers.ClipAction(env))


@both
def test_finite_ranges(start, workers):
  """Observations and actions are mapped as by the wrappers, bit for bit."""
  make = functools.partial(scripted_envs.EchoEnv, 6)
  reference = BatchEnv([wrap(make()) for _ in range(3)], True)
  env = start([make] * 3, 4, workers)
  assert env.observation_space == reference.observation_space
  assert env.action_space == reference.action_space
  random = np.random.RandomState(0)
  np.testing.assert_array_equal(env.reset(), reference.reset())
  kept = []
  for step in range(4):
    action = random.uniform(-2, 2, (3, 2)).astype(np.float32)
    one, two = env.step(action), reference.step(action)
    for x, y in zip(one[:3], two[:3]):
      assert x.dtype == y.dtype
      np.testing.assert_array_equal(x, y)
    assert one[2].all() == (step == 3)
    kept.append((one[0], two[0]))
  with pytest.raises(RuntimeError, match='Must reset environment'):
    env.step(action)
  rows = np.array([0, 2])
  np.testing.assert_array_equal(env.reset(rows), reference.reset(rows))
  # What was handed out is not overwritten.
  for x, y in kept:
    np.testing.assert_array_equal(x, y)


@both
def test_range_of_bytes(start, workers):
  """As by the wrappers."""
  reference = BatchEnv([wrap(scripted_envs.BytesEnv()) for _ in range(2)], True)
  env = start([scripted_envs.BytesEnv] * 2, 4, workers)
  action = np.zeros((2, 1), np.float32)
  for one, two in (
    (env.reset(), reference.reset()),
    (env.step(action)[0], reference.step(action)[0]),
  ):
    assert one.dtype == two.dtype == np.float32
    np.testing.assert_array_equal(one, two)


def test_steps_before_a_reset_are_refused(start):
  env = start([scripted_envs.VectorEnv], 4)
  with pytest.raises(RuntimeError, match='Must reset environment'):
    env.step(np.zeros((1, 1), np.float32))


@both
@pytest.mark.parametrize('bad, word', [(np.nan, 'NaN'), (np.inf, 'Infinite')])
def test_values_have_to_be_finite(start, bad, word, workers):
  good = scripted_envs.VectorEnv
  makers = [good, functools.partial(good, rewards=[0, bad])]
  env = start(makers, None, workers)
  env.reset()
  env.step(np.zeros((2, 1), np.float32))
  message = f'{word} reward encountered in VectorEnv'
  with pytest.raises(ValueError, match=message):
    env.step(np.zeros((2, 1), np.float32))


@pytest.mark.parametrize('step', [0, 2])
def test_observations_have_to_be_finite(start, step):
  """The name is that of the id, if there is one."""
  env_id = odd_gymnasium.register('Shaky', nan_at=step or -1)
  env = start([functools.partial(adapters.make, env_id)] * 2)
  with pytest.raises(ValueError, match='NaN observation .* in Shaky-v0'):
    env.reset()
    for _ in range(step):
      env.step(np.zeros((2, 2), np.float32))


@both
def test_discrete_actions(start, workers):
  """Counted from zero, and as integers, as by the wrappers."""
  reference = BatchEnv(
    [wrap(scripted_envs.ChoiceEnv()) for _ in range(3)], True
  )
  env = start([scripted_envs.ChoiceEnv] * 3, 4, workers)
  assert env.action_space == reference.action_space == spaces.discrete(3)
  np.testing.assert_array_equal(env.reset(), reference.reset())
  for actions in np.int32([[0, 1, 2], [2, 2, 0]]):
    for one, two in zip(env.step(actions)[:3], reference.step(actions)):
      assert one.dtype == two.dtype
      np.testing.assert_array_equal(one, two)
    taken = env[0].actions[-1], env[2].actions[-1]
    assert taken == (actions[0] - 1, actions[2] - 1)
    assert all(np.asarray(x).dtype.kind == 'i' for x in taken)


def worker_pids(env):
  return [host.pid for host in env._hosts]


def test_workers_are_free_of_tensorflow(start):
  env = start([scripted_envs.VectorEnv] * 2, None, 2)
  each = [env[index] for index in range(2)]
  assert [x.has_tensorflow for x in each] == [False] * 2
  assert sorted(x.pid for x in each) == sorted(worker_pids(env))


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSEGV])
def test_death_of_a_worker(start, number):
  """It is named with its exit code, and the others end as well."""
  env = start([scripted_envs.VectorEnv] * 2, None, 2)
  env.reset()
  pids, block = worker_pids(env), env._arrays._block.name
  os.kill(pids[1], number)
  with pytest.raises(RuntimeError) as error:
    for _ in range(3):
      env.step(np.zeros((2, 1), np.float32))
  text = f'process {pids[1]} ended with exit code {-number} ({number.name})'
  assert text in str(error.value)
  env.close()
  assert not processes.wait_for_end(pids)
  assert not os.path.exists(f'/dev/shm/{block}')


def test_nothing_stays_of_killed_processes(start):
  """Not in shared memory either, even if nobody is left who could remove it."""
  env = start([scripted_envs.VectorEnv] * 2, None, 2)
  env.reset()
  assert not os.path.exists(f'/dev/shm/{env._arrays._block.name}')
  observ, *_ = env.step(np.zeros((2, 1), np.float32))
  assert env.reset([1]).shape == observ[1:].shape


def test_no_shared_memory(start, monkeypatch):
  """Known before anything of a run is written, and no process stays."""

  def fail(*unused):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  monkeypatch.setattr(os, 'posix_fallocate', fail)
  before = {*multiprocessing.active_children()}
  with pytest.raises(errors.Failure, match='shm-size'):
    start([scripted_envs.VectorEnv] * 2, None, 2)
  assert {*multiprocessing.active_children()} <= before
