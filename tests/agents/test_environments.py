"""Environments of PPO, one by one and as a batch."""

import sys

import numpy as np
import pytest

from agents import environments
from agents.tools import AttrDict
from agents.tools import env_border
from agents.tools import errors
from agents.tools import wrappers
from agents.tools.batch_env import BatchEnv
from tests import processes

PENDULUM = 'InvertedPendulumBulletEnv-v0'


@pytest.mark.parametrize(
  'env, message',
  [
    ('CartPole-v1', 'continuous actions'),
    ('Pendulun-v1', 'Did you mean Pendulum-v1'),
    ('Nonsense', 'is unknown'),
    ('FetchReach-v4', 'PPO needs a box'),
  ],
)
def test_refused(env, message):
  """One sentence says why."""
  with pytest.raises(errors.UsageError, match=message) as error:
    environments.make(env)
  assert '\n' not in str(error.value)


def test_wrapped_pendulum():
  """Limit of time, infinite boxes stay, actions are clipped, 32 bits."""
  env = environments.wrapped(PENDULUM, 3)
  assert isinstance(env, wrappers.CacheSpaces)
  assert env.observation_space.shape == (5,)
  assert env.action_space.shape == (1,)
  assert np.isinf(env.action_space.high).all()
  with pytest.raises(RuntimeError, match='Must reset'):
    env.step(np.zeros(1, np.float32))
  assert env.reset().dtype == np.float32
  for done in (False, False, True):
    observ, reward, ended, _ = env.step(np.float32([0.1]))
    assert observ.dtype == reward.dtype == np.float32 and reward.shape == ()
    assert reward == 1 and bool(ended) is done
  env.close()


@pytest.mark.parametrize('duck', [False, True])
def test_minitaur(duck):
  """The original cannot find the one with the duck."""
  env = environments.minitaur(duck)
  assert env.observation_space.shape == (28,)
  assert env.action_space.shape == (8,)
  assert env.reset().shape == (28,)
  observ, reward, done, info = env.step(np.zeros(8, np.float32))
  assert observ.shape == (28,) and np.isfinite(reward)
  assert isinstance(done, bool) and isinstance(info, dict)
  env.close()


def play(env, steps, size):
  """Everything that comes out of a batch, with resets of what is done."""
  random = np.random.RandomState(0)
  rows = [env.reset()]
  for _ in range(steps):
    # Some are beyond the range and get clipped.
    action = random.uniform(-1.5, 1.5, (len(env), size)).astype(np.float32)
    observ, reward, done, _ = env.step(action)
    rows += [observ, reward, done]
    if done.any():
      rows.append(env.reset(np.where(done)[0]))
  return rows


@pytest.mark.parametrize(
  'env, workers',
  [(PENDULUM, 0), (PENDULUM, 2), ('Pendulum-v1', 0)],
)
def test_batch_equals_wrapped_environments(env, workers):
  """Bit for bit, also when spread over processes."""
  reference = BatchEnv([environments.wrapped(env, 7) for _ in range(3)], True)
  for index in range(3):
    reference[index].seed(5 + index)
  expected = play(reference, 20, 1)
  with processes.time_limit(60):
    batch = environments.batch(
      AttrDict(env=env, max_length=7), 3, seed=5, num_workers=workers
    )
    try:
      assert len(batch) == 3
      actual = play(batch, 20, 1)
      for name in ('observation_space', 'action_space'):
        assert getattr(batch, name) == getattr(reference, name)
    finally:
      batch.close()
  assert len(actual) == len(expected) > 61
  for one, two in zip(actual, expected):
    assert one.dtype == two.dtype
    np.testing.assert_array_equal(one, two)
  reference.close()


def test_resolving_does_not_depend_on_what_came_before():
  """Robotics, once imported, brings old ids back that cannot run."""
  env_border.resolve('FetchReach-v4')
  env_border.resolve.cache_clear()
  assert env_border.resolve('HalfCheetah-v3') == ('gymnasium', 'HalfCheetah-v5')
  assert env_border.resolve('Hopper-v2') == ('gymnasium', 'Hopper-v5')


def test_path_of_python():
  """PyBullet must not put its own `agents` in front of ours."""
  before = list(sys.path)
  env_border.resolve.cache_clear()
  env_border._gym_registry.cache_clear()
  env_border.resolve(PENDULUM)
  assert sys.path == before
  code = (
    'import sys; before = list(sys.path)\n'
    'from agents import environments\n'
    f'environments.make({PENDULUM!r}).reset()\n'
    'assert sys.path == before, sys.path\n'
    'assert "tensorflow" not in sys.modules\n'
    'import agents; print(agents.__file__)'
  )
  output = processes.run_python('-c', code)
  assert output.strip() == sys.modules['agents'].__file__
