"""Goal environments: old ids, what is missing, and exact states."""

import types

import gymnasium
import numpy as np
import pytest

from agents.envs.contract import GOAL_KEYS as KEYS
from agents.run import errors
from baselines_her import envs, vec_env

# Original id, id today, sizes of observation, goal and action, time limit.
ENVS = [
  ('FetchReach-v1', 'FetchReach-v4', 10, 3, 4, 50),
  ('FetchPush-v1', 'FetchPush-v4', 25, 3, 4, 50),
  ('FetchSlide-v1', 'FetchSlide-v4', 25, 3, 4, 50),
  ('FetchPickAndPlace-v1', 'FetchPickAndPlace-v4', 25, 3, 4, 50),
  ('HandReach-v0', 'HandReach-v3', 63, 15, 20, 50),
  ('HandManipulateBlock-v0', 'HandManipulateBlock-v1', 61, 7, 20, 100),
  ('HandManipulateEggRotate-v0', 'HandManipulateEggRotate-v1', 61, 7, 20, 100),
  ('HandManipulatePenFull-v0', 'HandManipulatePenFull-v1', 61, 7, 20, 100),
]


@pytest.mark.parametrize('old, new, o, g, u, T', ENVS)
def test_old_ids(old, new, o, g, u, T):
  assert envs.resolve(old) == new and envs.resolve(new) == new
  env = envs.make(old)
  assert env.spec.id == old and env._max_episode_steps == T
  obs = env.reset()
  assert set(obs) == set(KEYS)
  assert obs['observation'].shape == (o,) and env.action_space.shape == (u,)
  assert env.observation_space['observation'].dtype == np.float32
  goals = np.stack([obs['desired_goal']] * 5)
  assert goals.shape == (5, g)
  rewards = env.compute_reward(goals, goals, {})
  single = env._env.unwrapped.compute_reward(goals[0], goals[0], {})
  np.testing.assert_array_equal(rewards, np.full(5, single))
  # Now and then the library takes a whole turn of an object for a difference.
  assert single == 0 or 'Manipulate' in old
  env.close()


def test_time_limit():
  """Another limit than its own ends episodes."""
  env = vec_env.make_vec_env('FetchReach-v1', 'robotics', 1, 0, time_limit=5)
  env.reset()
  dones = [env.step(np.zeros((1, 4)))[2][0] for _ in range(10)]
  assert dones == [False] * 4 + [True] + [False] * 4 + [True]
  env.close()


def test_pens_are_rewarded_row_by_row():
  """The library's batch reward depends on the place in the batch."""
  env = envs.make('HandManipulatePenRotate-v1')
  random = np.random.RandomState(0)

  def goals():
    values = random.normal(size=(40, 7))
    values[:, 3:] /= np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    return values

  desired = goals()
  achieved = desired + 0.05 * random.normal(size=desired.shape)
  batch = env.compute_reward(achieved, desired, {})
  compute = env._env.unwrapped.compute_reward
  single = [compute(a, d, {}) for a, d in zip(achieved, desired)]
  np.testing.assert_array_equal(batch, single)
  assert (batch != compute(achieved, desired, {})).any()
  # Nor is one asked for its batch before it trains.
  envs.make('HandManipulatePenDense-v1').close()
  env.close()


@pytest.mark.parametrize('env_id', ['FetchPush-v1', 'HandManipulateBlock-v0'])
def test_states_are_exact(env_id):
  """Episodes after a restored state are the same to the bit."""

  def play(env):
    values = []
    for _ in range(2):
      values.append(env.reset())
      for step in range(20):
        values.append(env.step(actions[step])[0])
    return np.concatenate([np.concatenate(list(x.values())) for x in values])

  first, second = envs.make(env_id), envs.make(env_id)
  actions = np.random.RandomState(0).uniform(
    -1, 1, (20, *first.action_space.shape)
  )
  first.seed(1)
  play(first)
  second.reset()
  second.set_state(first.get_state())
  np.testing.assert_array_equal(play(first), play(second))
  first.close()
  second.close()


class Reach(gymnasium.Env):
  """The smallest environment with goals; tests take things away from it."""

  observation_space = gymnasium.spaces.Dict(
    {key: gymnasium.spaces.Box(-1, 1, (2,), np.float64) for key in KEYS}
  )
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, render_mode=None):
    self.render_mode = render_mode

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    return {key: self.np_random.uniform(-1, 1, 2) for key in KEYS}, {}

  def step(self, action):
    assert action.shape == (1,)
    return self.reset()[0], -1.0, False, False, {'is_success': 0.0}

  def compute_reward(self, achieved, desired, info):
    return -np.ones(achieved.shape[:-1])


def reward_of_one(self, achieved, desired, info):
  return -float(np.linalg.norm(achieved - desired))


def reward_of_other_sign(self, achieved, desired, info):
  return np.ones(achieved.shape[:-1])


def reward_that_fails(self, achieved, desired, info):
  raise KeyError(info['none'])


PROBLEMS = [
  ({'max_episode_steps': None}, 'no time limit'),
  ({'compute_reward': None}, 'no method compute_reward'),
  ({'compute_reward': reward_of_one}, 'one reward per goal'),
  ({'compute_reward': reward_that_fails}, 'but fails with'),
  ({'compute_reward': reward_of_other_sign}, 'returns 1 for a step .* is -1'),
  ({'action_space': gymnasium.spaces.Discrete(3)}, 'actions must be'),
  ({'observation_space': Reach.observation_space['observation']}, 'must be'),
  (
    {
      'observation_space': gymnasium.spaces.Dict(
        {k: Reach.observation_space[k] for k in KEYS[:2]}
      )
    },
    'desired_goal',
  ),
]


def register(monkeypatch, changes):
  changes = dict(changes)
  limit = changes.pop('max_episode_steps', 7)
  kind = type('Changed', (Reach,), changes)
  monkeypatch.setitem(
    gymnasium.registry,
    'TestReach-v0',
    gymnasium.envs.registration.EnvSpec(
      'TestReach-v0', entry_point=kind, max_episode_steps=limit
    ),
  )


def test_own_environments(monkeypatch):
  """By their id; actions of size one stay vectors."""
  register(monkeypatch, {})
  env = envs.make('TestReach-v0')
  env.reset()
  done = [env.step(np.zeros(1))[2] for _ in range(7)]
  assert done == [False] * 6 + [True]


@pytest.mark.parametrize('changes, message', PROBLEMS)
def test_what_is_missing(changes, message, monkeypatch):
  register(monkeypatch, changes)
  with pytest.raises(errors.UsageError, match=message):
    envs.make('TestReach-v0')


class Halved(gymnasium.Wrapper):
  """Changes the rewards of steps and of hindsight."""

  def step(self, action):
    observation, reward, *more = self.env.step(action)
    return observation, reward / 2, *more

  def compute_reward(self, *args):
    return self.env.unwrapped.compute_reward(*args) / 2


def test_rewards_of_the_outermost_wrapper():
  """Also through wrappers that do not know them."""
  env = envs.make(lambda: gymnasium.wrappers.TimeLimit(Halved(Reach()), 7))
  env.reset()
  _, reward, _, _ = env.step(np.zeros(1))
  goals = np.zeros((3, 2))
  assert reward == -0.5
  assert env.compute_reward(goals, goals, {}).tolist() == [-0.5] * 3


class Bare:
  """Class without a base, as gym of 2018 accepted them."""

  observation_space, action_space = Reach.observation_space, Reach.action_space
  _max_episode_steps = 7

  def reset(self):
    return self.observation_space.sample()

  def step(self, action):
    return self.reset(), -1.0, False, {}

  def compute_reward(self, achieved, desired, info):
    return -np.ones(achieved.shape[:-1])


def test_class_without_random_numbers_of_its_own():
  env = envs.make(Bare)
  env.reset()
  assert env.get_state() == {'random': None}
  env.set_state(env.get_state())


def test_unknown_and_missing(monkeypatch):
  with pytest.raises(errors.UsageError, match='Did you mean FetchReach'):
    envs.make('FetchRech-v1')
  with pytest.raises(
    errors.UsageError, match='HER cannot train on Pendulum-v1'
  ):
    envs.make('Pendulum-v1')
  for name in ('tests.baselines_her:None-v0', 'no_such_module:Env-v0'):
    with pytest.raises(errors.UsageError, match='nvironment'):
      envs.make(name)
  assert envs.base_name('HandReach-v0') == 'HandReach'
  assert envs.base_name('Plain') == 'Plain'
  assert isinstance(envs.make('FetchReach-v4').spec, types.SimpleNamespace)


def test_time_limit_without_the_module(tmp_path, monkeypatch):
  """It is unknown, which `--help` can do without."""
  (tmp_path / 'failing_module.py').write_text('raise ValueError("on purpose")')
  monkeypatch.syspath_prepend(tmp_path)
  for module in ('failing_module', 'no_such_module'):
    assert envs.find_time_limit(f'{module}:Env-v0') is None
