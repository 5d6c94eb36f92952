"""Environments of PPO, one by one and as a batch."""

import functools
import random
import sys

import gymnasium
import numpy as np
import pytest

from agents import configs
from agents.envs import registry, spaces
from agents.envs.batch_env import BatchEnv
from agents.run import errors
from agents.tools import AttrDict, continuous, wrappers
from tests import processes
from tests.agents import batches
from tests.agents.envs import odd_gymnasium

PENDULUM = 'InvertedPendulumBulletEnv-v0'


@pytest.mark.parametrize(
  'env, message',
  [
    (
      odd_gymnasium.register('Words', words=True),
      'cannot learn from .* Text.*Observations must be Box',
    ),
    ('Pendulun-v1', 'Did you mean Pendulum-v1'),
    ('Nonsense', 'is unknown'),
  ],
)
def test_refused(env, message):
  """One sentence says why."""
  with pytest.raises(errors.UsageError, match=message) as error:
    continuous.make(env)
  assert '\n' not in str(error.value)


CONFIGS = [x for x in vars(configs) if x.startswith('pybullet_')]


@pytest.mark.needs('pybullet')
@pytest.mark.parametrize('name', CONFIGS)
def test_same_seed_same_episodes(name):
  """In one process and in turn, whatever draws from the global generators."""
  constructor = getattr(configs, name)()['env']
  envs = [continuous.make(constructor, seed=seed) for seed in (5, 5, 6)]
  rows = [[], [], []]
  for step in range(6):
    for env, row in zip(envs, rows):
      random.random()
      np.random.uniform()
      if step % 4 == 0:
        row.append(np.asarray(env.reset()))
      else:
        action = np.full(env.action_space.shape, 0.3, np.float32)
        observ, reward, done, _ = env.step(action)
        row.append(np.append(observ, [reward, done]))
  first, same, other = [np.concatenate(row) for row in rows]
  np.testing.assert_array_equal(first, same)
  assert len(first) != len(other) or not np.allclose(first, other, 0, 1e-9)
  for env in envs:
    env.close()


class Drawer:
  """Environment of a user that draws from the global generators."""

  observation_space = spaces.box([-9] * 2, [9] * 2)
  action_space = spaces.box([-1], [1])

  def reset(self):
    return np.float32([random.gauss(0, 1), np.random.normal()])

  def step(self, action):
    return self.reset(), 0.0, False, {}


def test_global_generators_stay_as_they_are():
  """They belong to the rest of the program; without a seed they are used."""
  env, other = continuous.make(Drawer, seed=1), continuous.make(Drawer, seed=1)
  random.seed(2)
  np.random.seed(2)
  rows = [env.reset(), env.step(np.zeros(1))[0]]
  drawn = random.random(), np.random.uniform()
  random.seed(2)
  np.random.seed(2)
  assert drawn == (random.random(), np.random.uniform())
  np.testing.assert_array_equal(rows, [other.reset(), other.reset()])
  assert not np.array_equal(rows[0], rows[1])
  env.seed(1)
  np.testing.assert_array_equal(env.reset(), rows[0])
  random.seed(2)
  assert drawn[0] == random.random()
  unseeded = continuous.make(Drawer)
  random.seed(3)
  drawn = unseeded.reset()[0]
  random.seed(3)
  assert drawn == np.float32(random.gauss(0, 1))


def wrapped(env, max_length):
  """Environment with the wrappers of the original."""
  env = wrappers.LimitDuration(continuous.make(env), max_length)
  env = wrappers.ClipAction(wrappers.RangeNormalize(env))
  return wrappers.CacheSpaces(wrappers.ConvertTo32Bit(env))


def play(env, steps, size):
  """Everything that comes out of a batch, with resets of what is done."""
  generator = np.random.RandomState(0)
  rows = [env.reset()]
  for _ in range(steps):
    # Some are beyond the range and get clipped.
    action = generator.uniform(-1.5, 1.5, (len(env), size)).astype(np.float32)
    if spaces.is_discrete(env.action_space):
      action = (action[:, 0] > 0).astype(np.int32)
    observ, reward, done, _ = env.step(action)
    rows += [observ, reward, done]
    if done.any():
      rows.append(env.reset(np.where(done)[0]))
  return rows


@pytest.mark.parametrize(
  'env, workers',
  [
    pytest.param(PENDULUM, 0, marks=pytest.mark.needs('pybullet')),
    pytest.param(PENDULUM, 2, marks=pytest.mark.needs('pybullet')),
    ('Pendulum-v1', 0),
    ('CartPole-v1', 0),
    ('CartPole-v1', 2),
  ],
)
def test_batch_equals_wrapped_environments(env, workers):
  """Bit for bit, also when spread over processes."""
  reference = BatchEnv([wrapped(env, 7) for _ in range(3)], True)
  for index in range(3):
    reference[index].seed(5 + index)
  expected = play(reference, 20, 1)
  with processes.time_limit(60):
    batch = batches.make(
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


FLOAT_MAX = np.finfo(np.float32).max


class Counter:
  """Observes the time t as [t / 2, 3]; strict about its odd actions."""

  action_space = spaces.box([-5], [0.3])

  def __init__(self, low, high, dtype=np.float32, reward=1.0):
    self.observation_space = spaces.box([low, 3], [high, 3], dtype)
    self._reward = reward

  def reset(self):
    self.t = 0
    return np.array([0, 3])

  def step(self, action):
    assert self.action_space.contains(action)
    self.t += 1
    return np.array([self.t / 2, 3]), self._reward, False, {}


@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize(
  'space, expected',
  [
    ((-10, 10), [[0, -1], [0.05, -1], [0.1, -1]]),
    ((-10, 10, np.float16), [[0, -1], [0.05, -1], [0.1, -1]]),
    ((-np.inf, np.inf), [[0, 3], [0.5, 3], [1, 3]]),
    ((-np.inf, np.inf, np.float16), [[0, 3], [0.5, 3], [1, 3]]),
    ((-FLOAT_MAX, FLOAT_MAX), [[0, 3], [0.5, 3], [1, 3]]),
  ],
)
def test_unusual_observations(space, expected, workers):
  """Integers at first, constant dimensions, and too wide bounds."""
  env = functools.partial(Counter, *space, reward=np.array([1.0]))
  batch = batches.make(AttrDict(env=env, max_length=9), 2, None, workers)
  try:
    rows = [batch.reset()]
    for _ in range(2):
      observ, reward, _, _ = batch.step(np.ones([2, 1], np.float32))
      rows.append(observ)
  finally:
    batch.close()
  assert all(x.dtype == np.float32 for x in rows)
  np.testing.assert_allclose([x[1] for x in rows], expected, 1e-3)
  assert reward.tolist() == [1, 1]


def test_ids_of_the_main_program():
  """Workers know what only this process has registered."""
  gymnasium.register('OnlyHere-v0', odd_gymnasium.Odd)
  config = AttrDict(env='OnlyHere-v0', max_length=9)
  batch = batches.make(config, 1, num_workers=1)
  try:
    assert batch.reset().shape == (1, 3)
  finally:
    batch.close()
    del gymnasium.registry['OnlyHere-v0']


def test_rewards_beyond_32_bits():
  env = functools.partial(Counter, -10, 10, reward=1e39)
  batch = batches.make(AttrDict(env=env, max_length=9), 1)
  batch.reset()
  with pytest.raises(errors.EnvError, match='Infinite reward'):
    batch.step(np.ones([1, 1], np.float32))


def test_resolving_does_not_depend_on_what_came_before():
  """Robotics, once imported, brings old ids back that cannot run."""
  registry.resolve('FetchReach-v4')
  registry.resolve.cache_clear()
  assert registry.resolve('HalfCheetah-v3') == ('gymnasium', 'HalfCheetah-v5')
  assert registry.resolve('Hopper-v2') == ('gymnasium', 'Hopper-v5')


@pytest.mark.needs('pybullet')
def test_path_of_python():
  """PyBullet must not put its own `agents` in front of ours."""
  before = list(sys.path)
  registry.resolve.cache_clear()
  registry.resolve(PENDULUM)
  assert sys.path == before
  code = (
    'import sys; before = list(sys.path)\n'
    'from agents.tools import continuous\n'
    f'continuous.make({PENDULUM!r}).reset()\n'
    'assert sys.path == before, sys.path\n'
    'assert "tensorflow" not in sys.modules\n'
    'import agents; print(agents.__file__)'
  )
  output = processes.run_python('-c', code)
  assert output.strip() == sys.modules['agents'].__file__
