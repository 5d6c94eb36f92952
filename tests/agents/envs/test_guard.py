"""One sentence about each mistake of an environment."""

import decimal
import fractions
import functools
import itertools
import sys
from unittest import mock

import gymnasium
import numpy as np
import pytest

from agents import evaluation
from agents.envs import (
  adapters,
  batch_env,
  contract,
  declared,
  guard,
  spaces,
  vector,
  wrappers,
)
from agents.pipeline import toolbox, worker
from agents.run import errors
from baselines_her import envs
from planet.control import wrappers as control
from tests.agents.envs import odd_gymnasium


def make(name, render_mode=None):
  env_id = f'{odd_gymnasium.MODULE}:Odd{name}-v0'
  return wrappers.Guard(adapters.make(env_id, render_mode), env_id)


def play(name):
  env = make(name, 'rgb_array')
  env.reset()
  for _ in range(10):
    env.step(env.action_space.sample())
    env.render('rgb_array')


@pytest.mark.parametrize(
  'name, kind, message',
  [
    ('Broken', errors.EnvError, "constructor with KeyError.'no such"),
    (
      'Growing',
      errors.EnvError,
      r'Growing-v0 .* of shape \(4,\) in step 4, but',
    ),
    ('Faulty', errors.EnvError, 'failed in step 5 with ZeroDivisionError'),
    ('Exit', errors.EnvError, 'Exit-v0 failed in step 5 with SystemExit.0.'),
    ('Last', errors.EnvError, 'Last-v0 returned info None in step 10'),
    ('NoImage', errors.EnvError, 'NoImage-v0 returns None; with'),
    ('Blind', errors.UsageError, 'takes no render_mode'),
    ('Brokn', errors.UsageError, 'Did you mean OddBroken-v0'),
  ],
)
def test_mistakes(name, kind, message):
  with pytest.raises(kind, match=message) as caught:
    play(name)
  raised = name in ('Broken', 'Faulty', 'Exit')
  details = getattr(caught.value, 'details', '')
  assert details.count('Traceback') == raised
  assert ('/odd_gymnasium.py' in details) == raised


class Scripted:
  """Environment whose second step returns or raises what it is given."""

  def __init__(self, transition, space):
    self.observation_space, self.action_space = space, space
    self._transition, self._steps = transition, 0

  def reset(self):
    observ, *_ = self._regular()
    return observ

  def step(self, action):
    self._steps += 1
    if self._steps < 2:
      return self._regular()
    if isinstance(self._transition, BaseException):
      raise self._transition
    change = self._transition
    return tuple(change.get(i, x) for i, x in enumerate(self._regular()))

  def _regular(self):
    return self.observation_space.sample(), 1.0, False, {}


class Tensor:
  """Requires a gradient, which NumPy cannot keep."""

  def __array__(self, *args, **kwargs):
    raise RuntimeError('use detach()')

  def __repr__(self):
    return 'tensor(1)'


BOX = spaces.box(-np.ones(2), np.ones(2))
GOALS = spaces.dictionary({'observation': BOX, 'achieved_goal': BOX})
ZEROS = np.zeros(2)
CHOICE = gymnasium.spaces.Discrete(3, start=-1)
NESTED = spaces.dictionary({'arm': GOALS})
PAIR = gymnasium.spaces.Tuple([BOX, CHOICE])


@pytest.mark.parametrize(
  'space, transition, words',
  [
    (BOX, SystemExit(0), r'failed in step 2 with SystemExit\(0\)'),
    (BOX, GeneratorExit(), 'failed in step 2 with GeneratorExit'),
    (BOX, StopIteration(), 'failed in step 2 with StopIteration'),
    (BOX, {0: None}, 'as an observation None in step 2'),
    (BOX, {0: np.array(['a', 'b'])}, "array.*'a'.* in step 2"),
    (BOX, {0: [[1], [1, 2]]}, r'\[\[1\], \[1, 2\]\] in step 2'),
    (BOX, {0: np.zeros(3)}, r'shape \(3,\) in step 2'),
    (BOX, {1: None}, 'reward None in step 2'),
    (BOX, {1: 'good'}, "reward 'good' in step 2"),
    (BOX, {1: np.ones(2)}, 'reward array.* in step 2'),
    (BOX, {1: 1j}, 'reward 1j in step 2'),
    (BOX, {1: Tensor()}, r'reward tensor\(1\) in step 2'),
    (BOX, {0: Tensor()}, r'as an observation tensor\(1\) in step 2'),
    (BOX, {2: 'yes'}, "the end 'yes' in step 2"),
    (BOX, {3: None}, 'info None in step 2'),
    (GOALS, {0: None}, 'observation None in step 2'),
    (GOALS, {0: {'observation': ZEROS}}, 'without achieved_goal in step 2'),
    (GOALS, {0: {'observation': ZEROS, 'achieved_goal': np.zeros(3)}}, '3,'),
    (GOALS, {0: {'observation': ZEROS, 'achieved_goal': 'here'}}, "'here'"),
    (NESTED, {0: {'arm': {'observation': ZEROS}}}, 'without arm/achieved_goal'),
    (NESTED, {0: {'arm': None}}, 'without arm/.* in step 2'),
    (PAIR, {0: (ZEROS,)}, 'without part 1 in step 2'),
    (PAIR, {0: (np.zeros(3), 0)}, r'part 0 of shape \(3,\) in step 2'),
    (PAIR, {0: (ZEROS, 2)}, r'as part 1 2 in step 2, .* Discrete\(3, start=-1'),
    (CHOICE, {0: -2}, 'as an observation -2 in step 2, which'),
    (CHOICE, {0: 0.5}, 'as an observation 0.5 in step 2, which'),
    (
      gymnasium.spaces.MultiDiscrete([3, 2]),
      {0: [2, 2]},
      r'\[2, 2\] in step 2',
    ),
  ],
)
def test_mistakes_of_a_later_step(space, transition, words):
  """One sentence with environment, step and value."""
  env = wrappers.Guard(Scripted(transition, space), 'Mine-v0')
  env.reset()
  env.step(ZEROS)
  with pytest.raises(errors.EnvError, match=words) as caught:
    env.step(ZEROS)
  assert 'Mine-v0' in str(caught.value)


class Endless(gymnasium.Env):
  """Forgets to return whether its episode has ended.

  Args:
    rest: What `step` returns after observation and reward.
  """

  observation_space = action_space = BOX

  def __init__(self, *rest):
    self._rest = rest

  def reset(self, *, seed=None, options=None):
    return ZEROS, {}

  def step(self, action):
    return ZEROS, 1.0, *self._rest


class OldEndless:
  """The same without a base class, as in code for early versions of gym."""

  observation_space = action_space = BOX
  reset, step = Endless.reset, Endless.step
  _rest = None, {}


@pytest.mark.parametrize(
  'make',
  [
    lambda: Endless(None, False, {}),
    lambda: Endless(None, {}),
    OldEndless,
    lambda: adapters.AsGymnasium(adapters.adapt(OldEndless())),
  ],
)
def test_end_that_is_missing(make):
  """It is not taken for False, with which no episode would end."""
  env = wrappers.Guard(adapters.create(make), 'Mine-v0')
  env.reset()
  with pytest.raises(errors.EnvError, match='the end None in step 1'):
    env.step(ZEROS)


class Modern(Scripted, gymnasium.Env):
  """The same with the interface of gymnasium."""

  def reset(self, *, seed=None, options=None):
    return super().reset(), {}

  def step(self, action):
    observ, reward, done, info = super().step(action)
    return observ, reward, done, False, info


class Still:
  """Policy of another library."""

  def predict(self, observation, **kwargs):
    return ZEROS, None


@pytest.mark.parametrize('kind', ['object', 'function', 'gymnasium'])
@pytest.mark.parametrize(
  'transition, words',
  [
    (SystemExit(0), r'.* failed in step 2 with SystemExit\(0\)'),
    ({0: np.zeros(3)}, r'.* of shape \(3,\) in step 2'),
    ({1: None}, '.* returned reward None in step 2'),
    ({1: np.ones(2)}, '.* returned reward array.* in step 2'),
    ({1: np.nan}, 'NaN reward encountered in '),
    ({2: None}, '.* returned the end None in step 2'),
    ({3: None}, '.* returned info None in step 2'),
  ],
)
def test_mistakes_during_evaluation(transition, words, kind):
  """The same sentences; returns were NaN, or errors those of Python."""
  env = Scripted(transition, BOX)
  if kind == 'function':
    env = functools.partial(Scripted, transition, BOX)
  elif kind == 'gymnasium':
    env = Modern(transition, BOX)
  with pytest.raises(errors.EnvError, match=words):
    evaluation.evaluate(Still(), env, episodes=1)


def test_failed_steps_during_evaluation():
  """Episodes start over, however often; Python's stack ended."""
  failures = sys.getrecursionlimit()
  infos = itertools.chain([{'step_error': 1}] * failures, itertools.repeat({}))
  env = Scripted({}, BOX)
  env.step = lambda action: (BOX.sample(), 1.0, True, next(infos))
  assert evaluation.evaluate(Still(), env, episodes=2).returns == [1, 1]


@pytest.mark.parametrize(
  'value, failed',
  [
    (True, True),
    (np.True_, True),
    ('lost', True),
    (False, False),
    ('', False),
    (None, False),
    (3, False),
    (0.03, False),
    (np.float32(0.03), False),
    (np.ones(2), False),
  ],
)
def test_what_says_that_a_step_failed(value, failed):
  """Environments may report the error of their controller by this name."""
  assert guard.has_failed({'step_error': value}) is failed


@pytest.mark.parametrize(
  'action, space',
  [
    (np.zeros(1), BOX),
    (np.zeros([1, 2]), BOX),
    (1, BOX),
    (np.zeros(1), CHOICE),
    (0.5, CHOICE),
  ],
)
def test_policies_of_other_actions(action, space):
  """NumPy repeats one number, and cuts another; the returns were wrong."""
  policy = mock.Mock(spec=Still)
  policy.predict.return_value = action, None
  env = Scripted({2: True}, BOX)
  env.action_space = space
  with pytest.raises(errors.UsageError, match='the actions of its training'):
    evaluation.evaluate(policy, env, episodes=1)
  with pytest.raises(errors.UsageError, match='not know its environment'):
    evaluation.evaluate(policy)


@pytest.mark.parametrize(
  'transition',
  [
    {0: [0.5, 1]},
    {0: np.zeros(2, int)},
    {1: np.ones(1)},
    {1: np.float32(2)},
    {1: 3},
    {1: True},
    {1: fractions.Fraction(3, 2)},
    {1: decimal.Decimal('1.5')},
    {1: 10**30},
    {1: np.array(1.5, object)},
    {2: np.bool_(True)},
    {2: 1},
    {2: np.ones(1, bool)},
    {2: [False]},
  ],
)
def test_unusual_values(transition):
  """What environments of others return, and what can be used."""
  env = wrappers.Guard(Scripted(transition, BOX), 'Mine-v0')
  env.reset()
  env.step(ZEROS)
  _, reward, done, _ = env.step(ZEROS)
  assert np.ndim(reward) == 0
  assert np.asarray(reward).dtype.kind in 'fi'
  assert reward == transition.get(1, 1.0)
  assert done is bool(np.all(transition.get(2, False)))


def test_infos_that_are_no_arrays():
  """They are left out, as texts are."""
  info = {'x': Tensor(), 'success': Tensor(), 'y': 1}
  assert contract.find_numbers(info) == {'y': 1} == worker.numbers(info)
  assert contract.find_success(info) is None


@pytest.mark.parametrize(
  'fault, words',
  [
    (lambda r: r[:-1], r'shape \(4,\) .* batch of 5'),
    (lambda r: r.astype(str), 'dtype <U'),
    (lambda r: r * np.nan, 'reward that is NaN'),
    (lambda r: None, 'dtype object'),
    (lambda r: sys.exit(0), 'in compute_reward with SystemExit'),
  ],
)
def test_rewards_of_goals(fault, words):
  env = envs.make('FetchReach-v1')
  inner = env.unwrapped
  compute = inner.compute_reward
  goals = np.zeros((5, 3))
  assert env.compute_reward(goals, goals, {}).shape == (5,)
  inner.compute_reward = lambda *args: fault(compute(*args))
  with pytest.raises(errors.EnvError, match=words) as caught:
    env.compute_reward(goals, goals, {})
  assert 'FetchReach-v' in str(caught.value)
  env.close()


@pytest.mark.parametrize(
  'image, words',
  [
    (None, 'returns None'),
    (np.zeros(8), r'shape \(8,\)'),
    (np.zeros((8, 8, 3), str), 'returns array'),
    (np.zeros((8, 8, 5), np.uint8), r'\(8, 8, 5\).* 3 channels'),
    (np.zeros((8, 8, 3), int), 'from int64 to uint8'),
    (np.zeros((9, 9), bool), r'\(9, 9\) of bool'),
    (np.zeros((0, 0, 3), np.uint8), r'\(0, 0, 3\) of uint8'),
  ],
)
def test_images_of_a_later_step(image, words):
  """Also those that can be shown, but not learned from."""
  images = [np.zeros((8, 8, 3), np.uint8), image]

  class Drawing(Scripted):
    def render(self, mode):
      return images[self._steps]

  env = wrappers.Guard(Drawing({}, BOX), 'Mine-v0')
  env = control.PixelObservations(control.ObservationDict(env), (8, 8))
  env.reset()
  with pytest.raises(errors.EnvError, match=words):
    env.step(ZEROS)


def test_unknown_module():
  with pytest.raises(errors.UsageError, match="No module named 'nowhere'"):
    adapters.make('nowhere:Odd-v0', 'rgb_array')


@pytest.mark.parametrize('workers', [0, 2])
def test_traceback_comes_once(workers):
  """It travels beside the sentence, wherever the environment lives."""
  batch = batch_env.VectorEnv([lambda: make('Faulty')] * 2, workers)
  batch.reset()
  try:
    with pytest.raises(errors.EnvError, match='failed in step 5') as caught:
      for _ in range(5):
        batch.step([batch.action_space.sample()] * 2)
  finally:
    batch.close()
  assert 'Traceback' not in str(caught.value)
  assert caught.value.details.count('Traceback') == 1


@pytest.mark.parametrize('name', ['exits_at_once:X-v0', 'exits_at_once:make'])
def test_module_that_exits(tmp_path, monkeypatch, name):
  """Also if it is only asked for its settings."""
  (tmp_path / 'exits_at_once.py').write_text('import sys; sys.exit(0)')
  monkeypatch.syspath_prepend(tmp_path)
  assert declared.find(name) is None
  with pytest.raises(errors.EnvError, match=r'in its module.* SystemExit\(0\)'):
    adapters.create(name)
  with pytest.raises(errors.UsageError, match="'exits_at_once' ends the prog"):
    toolbox.get_module('exits_at_once')


def test_exit_while_closing():
  """The environments after it are closed, and the program goes on."""
  closed = []

  class Closing(wrappers.Wrapper):
    def close(self):
      closed.append(self)
      raise SystemExit(0)

  vector.Group([lambda: Closing(None)] * 2).close()
  assert len(closed) == 2
