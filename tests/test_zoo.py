"""The zoo of environments: check, PlaNet and HER say what the table says.

For PPO, by itself and in sessions, and for DDPG, the check says what they do.
"""

import contextlib
import re

import gymnasium
import numpy as np
import pytest

from agents.envs import check, hosts, probe, spaces
from agents.pipeline import env_config, worker
from agents.pipeline.params import ppo_pendulum
from agents.run import errors
from agents.tools.attr_dict import AttrDict
from baselines_her import library
from planet.envs import gym_pixels
from tests import zoo
from tests.agents import batches

S = gymnasium.spaces
ROWS = {row.what: row for row in zoo.ROWS}
GOALS = {row.what: row for row in zoo.GOALS}


def make(row):
  """Return the environment of a row, or its id."""
  if row.needs:
    module = pytest.importorskip(row.needs, reason=f'needs {row.needs}')
    if hasattr(module, 'ALEInterface') or row.needs == 'minigrid':
      gymnasium.register_envs(module)
  return row.env if isinstance(row.env, str) else row.env()


def assert_said(expected, said):
  if expected == zoo.OK:
    assert not any(said), said
  else:
    assert re.search(expected, ' '.join(said)), said


@contextlib.contextmanager
def named(env):
  """The id of an environment, which may be an object."""
  if not isinstance(env, str):
    made, env = env, 'Zoo-v0'
    # Environments of the zoo have a mode; it is not asked for again.
    gymnasium.register(env, lambda **_: made)
  try:
    yield env
  finally:
    gymnasium.registry.pop('Zoo-v0', None)


def use_check(env, system):
  with named(env) as name:
    try:
      return check.check(name, [system]).problems[system]
    except (errors.UsageError, errors.EnvError) as error:
      return [str(error)]


def use_planet(env, **kwargs):
  """Play two episodes as the collection does."""
  try:
    env = gym_pixels.make(env, 2, 30, min_length=7, image_size=32, **kwargs)
    for _ in range(2):
      observ, done = env.reset(), False
      while not done:
        observ, reward, done, _ = env.step(env.action_space.sample())
        for key, value in observ.items():
          assert env.observation_space.spaces[key].contains(value), key
        assert reward.dtype == np.float32
    env.close()
  except (errors.UsageError, errors.EnvError) as error:
    return [str(error)]
  return []


def use_ppo(env):
  """Play two episodes as PPO does."""
  config = AttrDict(env=env, max_length=30, env_settings=None)
  try:
    with contextlib.closing(batches.make(config, 1)) as batch:
      for _ in range(2):
        batch.reset()
        done = False
        while not done:
          _, _, (done,), _ = batch.step(batch.action_space.sample()[None])
  except (errors.UsageError, errors.EnvError) as error:
    return [str(error)]
  return []


def play(tree):
  """Play two episodes as explorers do."""
  player = worker.Worker(tree)
  space = player._env.action_space
  for _ in range(2):
    player.reset()
    done = False
    while not done:
      _, _, done, _ = player.step({'agent': spaces.sample(space)})


def use_session(env):
  """Play as PPO in sessions does."""

  def inspect(tree):
    # Another process does not know the environments of a test.
    return probe.describe(env_config.make(tree))

  with named(env) as name, pytest.MonkeyPatch.context() as patch:
    patch.setattr(env_config, 'inspect', inspect)
    own = {'config': 'default', 'model_name': name, 'ppo': {'max_length': 30}}
    try:
      tree = ppo_pendulum.gen_params({**ppo_pendulum.cpanel, **own})
      play(tree['env'])
    except (errors.UsageError, errors.EnvError) as error:
      return [str(error)]
    return []


def use_ddpg(env):
  """Play as DDPG does."""
  with named(env) as name:
    tree = {'name': name}
    try:
      env_config.make(tree, system='pipeline')
      play(tree)
    except (errors.UsageError, errors.EnvError) as error:
      return [str(error)]
    return []


def use_her(env):
  """Train in an episode and test."""
  small = dict(n_cycles=1, n_batches=1, batch_size=8, hidden=4)
  try:
    # At least an epoch; less would train nothing.
    assert list(
      library.train(env, None, 10, {**small, 'n_test_rollouts': 1}, 0)
    )
  except (errors.UsageError, errors.EnvError) as error:
    return [str(error)]
  return []


# Takes several seconds to make a track.
ALL = [
  pytest.param(x, marks=pytest.mark.slow) if x == 'CarRacing' else x
  for x in ROWS
]


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('what', ALL)
def test_check(what):
  row = ROWS[what]
  if row.check is not None:
    assert_said(row.check, use_check(make(row), 'planet'))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('what', ALL)
def test_planet(what):
  row = ROWS[what]
  if row.planet is not None:
    assert_said(row.planet, use_planet(make(row)))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('what', ALL)
def test_planet_with_vectors(what):
  row = ROWS[what]
  if row.vector is not None:
    assert_said(row.vector, use_planet(make(row), pixels=False))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('what', ALL)
@pytest.mark.parametrize('use', [use_ppo, use_session, use_ddpg])
def test_check_and_use(use, what):
  """In the same words, but for the name and where a number is not finite."""
  system = 'pipeline' if use is use_ddpg else 'ppo'
  said, done = (
    re.sub(r'<\w+ instance>', 'Zoo-v0', ' '.join(x))
    for x in (use_check(make(ROWS[what]), system), use(make(ROWS[what])))
  )
  assert_said(getattr(ROWS[what], 'ddpg' if use is use_ddpg else 'ppo'), [said])
  if 'finite numbers' in said:
    assert re.search('NaN|[Ii]nfinite', done)
  else:
    # Training stops at the first problem.
    assert bool(said) == bool(done) and said.startswith(done)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('what', [*ALL, *GOALS])
def test_her(what):
  row = {**ROWS, **GOALS}[what]
  for said in use_check(make(row), 'her'), use_her(make(row)):
    assert_said(row.her, said)


def test_size():
  assert len({*ROWS, *GOALS}) == len(zoo.ROWS) + len(zoo.GOALS)
  assert len(ROWS) >= 40


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('answer', [None, 0, 'text', print, KeyError])
def test_names_that_mean_something_else(answer):
  """An environment that answers to all names of the documentation."""

  class Other(zoo.Own):
    def __getattr__(self, name):
      if name.startswith('_'):
        raise AttributeError(name)
      if answer is KeyError:
        raise KeyError(name)
      return answer

  assert use_check(Other(), 'planet') == []
  with named(Other()) as name:
    assert use_planet(name) == use_planet(name, pixels=False) == []
  assert hosts.find_seconds_to_close(Other()) == 0


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('most, hidden', [(1e10, 1), (np.inf, 0), (100, 0)])
def test_bounds_that_hide_observations(most, hidden):
  """As those of gym-anytrading: all that PPO gets are zeros."""
  space = S.Box(-most, most, (2,), np.float32)
  env = zoo.Own(lambda step: np.float32([step, 2 * step]), space)
  with named(env) as name:
    hints = check.check(name, ['ppo']).hints
  assert sum('few digits or none' in x for x in hints) == hidden
  ranges = spaces.Ranges(space, env.action_space)
  first, last = (ranges.observ(np.float32([x, x])) for x in (1, 9))
  assert (first == last).all() == hidden
