"""Actions that reach environments, whatever system sends them."""

import collections

import gymnasium
import numpy as np
import pytest

from agents import evaluation
from agents.envs import adapters, check, contract, spaces
from agents.pipeline import worker
from agents.run import errors
from agents.tools import continuous
from baselines_her import vec_env
from planet.envs import gym_pixels
from tests.agents.envs import strict

PROPOSALS = [
  np.full(2, x, np.float32) for x in (-1, 1, 0.3, -7, 1e38, np.inf, -np.inf)
]


@pytest.mark.parametrize('name', strict.SPACES)
def test_planet(name):
  env = strict.Strict(name)
  wrapped = gym_pixels.make(env, 1, 100, pixels=False)
  wrapped.reset()
  for action in [*PROPOSALS, wrapped.action_space.sample()]:
    wrapped.step(action)
  assert len(env.actions) == 8


@pytest.mark.parametrize('make', [strict.Strict, strict.Duck])
@pytest.mark.parametrize('name', strict.SPACES)
def test_ppo(name, make):
  """Training and evaluation send the same."""
  batch = continuous.ScaledVectorEnv([lambda: continuous.make(make(name))])
  batch.reset()
  single = make(name)
  ranges = spaces.Ranges(single.observation_space, single.action_space)
  for action in PROPOSALS:
    batch.step(action[None])
    assert single.action_space.contains(ranges.clipped_action(action))


@pytest.mark.parametrize('name', strict.SPACES)
def test_her(name):
  env = vec_env.DummyVecEnv(
    [lambda: vec_env.make_env(strict.GOAL_IDS[name], 1, 1.0, None, None)]
  )
  env.reset()
  for action in [*PROPOSALS[:4], np.array([np.nan, 1])]:
    env.step(action)


@pytest.mark.parametrize('make', [strict.Strict, strict.Duck])
@pytest.mark.parametrize('name', strict.SPACES)
def test_pipeline(name, make):
  tree = {
    'constructor': f'tests.agents.envs.strict.{make.__name__}',
    'kwargs': {'name': name},
  }
  env = worker.Worker(tree, 1)
  env.reset()
  for action in PROPOSALS:
    env.step({'agent': action})


@pytest.mark.parametrize('name', strict.SPACES)
def test_check_and_evaluation(name):
  """Of any policy, in an environment of the user."""

  class Policy:
    def predict(self, *unused_args, **unused_kwargs):
      return np.float64([1e300, -0.4]), None

  check.check(strict.GOAL_IDS[name])
  env = adapters.make(strict.GOAL_IDS[name])._env
  found = evaluation.evaluate(Policy(), env, episodes=1)
  assert found.lengths == [5] and found.successes == [True]


def test_integers_are_the_nearest():
  fit = spaces.fitting(strict.action_space('integers'))
  for action, wanted in (
    ([1.6, -2.6], [2, -3]),
    ([2.5, 9], [2, 3]),
    ([[-9, 0.4]], [[0, 0]]),
  ):
    assert fit(np.array(action)).tolist() == wanted
  ends = np.iinfo(np.int64)
  fit = spaces.fitting(spaces.box([ends.min], [ends.max], np.int64))
  assert fit(np.float64([1e30])) == ends.max
  assert fit(np.float64([-np.inf])) == ends.min


def test_ends_of_small_floats():
  """Both bounds are reached, which 16 bits would round."""
  space = gymnasium.spaces.Box(-0.1, 0.3, (1,), np.float16)
  for value, bound in ((-1, space.low), (1, space.high)):
    action = spaces.UnitBox(space).to_box(np.full(1, value, np.float32))
    assert action.astype(np.float16) == bound


def test_discrete_actions_have_the_dtype():
  fit = spaces.fitting(spaces.discrete(3))
  assert type(fit(2)) is int and fit(np.int32(2)).dtype == np.int64
  parts = {'a': spaces.discrete(3), 'b': spaces.box([0], [1])}
  found = spaces.fitting(spaces.dictionary(parts))({'a': 1, 'b': np.ones(1)})
  assert found['a'] == 1 and found['b'].dtype == np.float32


@pytest.mark.parametrize('shape', [(0,), (0, 3)])
def test_empty_parts_are_stored(shape):
  empty = gymnasium.spaces.Box(-1, 1, shape, np.float32)
  space = spaces.dictionary({'a': spaces.box([0], [1]), 'b': empty})
  assert spaces.from_plain(spaces.to_plain(space)) == space
  assert spaces.describe(space)['b']['dim'] == list(shape)


def test_nan_is_refused():
  with pytest.raises(errors.NotFinite, match='action is NaN'):
    spaces.fitting(spaces.box([0], [1]))(np.array([np.nan]))


def test_planet_refuses_one_bound_in_the_check_too():
  env = strict.Strict('half')
  env.action_space = spaces.box([0, 0], [np.inf, np.inf])
  with pytest.raises(errors.UsageError, match='one bound'):
    contract.check_spaces(adapters.adapt(env), 'it', 'planet')


class OwnBox(gymnasium.spaces.Box):
  pass


class OwnDiscrete(gymnasium.spaces.Discrete):
  pass


class OwnDict(gymnasium.spaces.Dict):
  pass


def test_classes_derived_from_those_of_gymnasium():
  """They count as what they are derived from, also in another process."""
  box, choice = OwnBox(-1, 1, (2,)), OwnDiscrete(3, start=1)
  parts = collections.OrderedDict(b=box, a=OwnDict(x=choice))
  found = spaces.convert(gymnasium.spaces.Tuple([OwnDict(parts), choice]))
  kinds = gymnasium.spaces
  assert found == kinds.Tuple([kinds.Dict(parts), choice])
  kept, last = found.spaces
  assert list(kept.spaces) == ['b', 'a'] and type(last) is kinds.Discrete
  assert type(kept) is type(kept['a']) is kinds.Dict
  assert type(kept['b']) is kinds.Box
  plain = kinds.Dict(
    collections.OrderedDict(b=kinds.Box(0, 1), a=kinds.Text(1))
  )
  assert spaces.convert(plain) is plain


def make_own():
  env = strict.Strict('rounding')
  env.observation_space = OwnDict(a=OwnBox(-1, 1, (2,)), b=OwnDiscrete(3))
  env.action_space = OwnDiscrete(2)
  return env


def test_derived_classes_are_accepted():
  for system in ('planet', 'ppo'):
    env = adapters.create(make_own)
    contract.check_spaces(env, 'it', system, vector=True)
