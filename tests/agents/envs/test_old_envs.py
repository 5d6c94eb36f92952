"""Environments of earlier versions of gym, in all systems."""

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

gym = pytest.importorskip('gym')

from agents import evaluation  # noqa: E402
from agents.envs import (  # noqa: E402
  adapters,
  batch_env,
  check,
  contract,
  external,
  probe,
  registry,
  wrappers,
)
from agents.run import errors  # noqa: E402
from agents.tools import continuous  # noqa: E402
from tests.agents.envs import odd_gymnasium, old_envs  # noqa: E402

ALL = [*old_envs.IDS, *old_envs.NAMES, *old_envs.OBJECTS]


def play(env, seed, steps=old_envs.LENGTH):
  """Observations and the last transition of an episode."""
  env.seed(seed)
  found = [env.reset()]
  for _ in range(steps):
    *transition, info = env.step(np.array([0.5], np.float32))
    assert len(transition) == 3 and isinstance(info, dict)
    found.append(transition[0])
  return np.array(found), transition[-1], info


@pytest.mark.parametrize('given', ALL, ids=str)
def test_interface(given):
  """One interface, seeds that count, and images."""
  env = adapters.create(given, 'rgb_array')
  limited = isinstance(given, str) and not given.endswith(':Old')
  first, done, info = play(env, 3)
  assert bool(done) == limited
  assert info.get('truncated', False) == limited
  np.testing.assert_allclose(np.diff(first, axis=0), 0.25, atol=1e-6)
  np.testing.assert_array_equal(play(env, 3)[0], first)
  assert (play(env, 4)[0] != first).all()
  if given is not old_envs.Half:
    # It needs the mode in its constructor.
    assert np.asarray(env.render('rgb_array')).shape == (64, 64, 3)
  env.close()


@pytest.mark.parametrize(
  'make',
  [
    old_envs.made,
    old_envs.made_late,
    *old_envs.OBJECTS,
    *(lambda x=x: gym.make(f'{x}Point-v0') for x in old_envs.GYM),
    lambda: gymnasium.make('HalfPoint-v0'),
  ],
)
def test_objects(make):
  """Environments that exist already, with and without wrappers."""
  env = make()
  played = play(adapters.create(env), 3)[0]
  np.testing.assert_allclose(np.diff(played, axis=0), 0.25, atol=1e-6)
  # Once more, as the first time may have changed it.
  np.testing.assert_array_equal(play(adapters.create(env), 3)[0], played)


@pytest.mark.parametrize('given', [*old_envs.IDS, *old_envs.NAMES])
def test_every_system(given):
  """As they look before they begin, and as `agents-check-env` does."""
  from agents.pipeline import env_config
  from planet.envs import gym_pixels

  report = check.check(given, ['planet', 'ppo', 'pipeline'])
  assert not any(report.problems.values()), report.lines()
  assert report.facts['images'] == 'uint8 [64, 64, 3]'
  made = [
    continuous.make(given, seed=1),
    gym_pixels.make(given, 1, 4),
    env_config.make({'name': given}),
  ]
  for env in made:
    contract.try_step(env, given)
  assert (made[1].reset()['image'] == 7).all()
  assert probe.describe(made[2])['action_space']['agent']['dim'] == [1]


def test_check_prints_no_warnings():
  """Of gym and gymnasium, about what needs no change."""
  names = [f'{old_envs.__name__}:made', f'{odd_gymnasium.__name__}:OddBlind-v0']
  for name in names:
    command = [sys.executable, '-m', 'agents.check_env', name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'PPO: ok' in done.stdout and 'WARN' not in done.stderr


@pytest.mark.parametrize('given', old_envs.GOAL_IDS)
def test_goals(given):
  """HER: rewards of goals, time limit, and a state to continue from."""
  from baselines_her import config, envs, vec_env

  report = check.check(given, ['her'])
  assert report.problems == {'her': []}
  task = config.Task(given)
  assert task.time_limit == old_envs.LENGTH
  assert envs.find_time_limit(given) == old_envs.LENGTH
  made = f'{old_envs.__name__}:made'
  assert [envs.resolve(x) for x in (given, made)] == [given, made]
  assert task.dims == {'o': 2, 'u': 2, 'g': 2, 'info_is_success': 1}
  env = envs.make(given)
  env.seed(1)
  env.reset()
  state = env.get_state()
  later = env.reset()['desired_goal']
  env.set_state(pickle.loads(pickle.dumps(state)))
  np.testing.assert_array_equal(env.reset()['desired_goal'], later)
  batch = vec_env.make_vec_env(given, 'robotics', 1, 0)
  batch.reset()
  assert batch.step(np.zeros([1, 2]))[0]['observation'].shape == (1, 2)
  batch.close()


def test_hint():
  """Told what is old, as other software will refuse it."""
  for given in ('Old', 'Renamed', 'Duck'):
    report = check.check(f'{old_envs.__name__}:{given}Point-v0', ['ppo'])
    assert any('gym' in x and 'interface' in x for x in report.hints)
  assert not check.check('Pendulum-v1', ['ppo']).hints


def test_ids_that_only_the_main_program_knows():
  """They are registered in other processes, too."""
  from gym.envs import registration

  registration.register('Main-v0', entry_point=old_envs.Old)
  assert registry.resolve('Main-v0') == ('gym', 'Main-v0')
  packed = registry.pack()
  del registration.registry['Main-v0']
  registry.unpack(packed)
  assert adapters.create('Main-v0').reset().shape == (2,)


@pytest.mark.parametrize(
  'name, sentence',
  [
    ('OldPont-v0', 'neither with gymnasium nor with gym.*mean OldPoint-v0'),
    ('mad', 'no function or class of this name. Did you mean made'),
    ('OldPoint-v7', 'OldPoint-v0'),
  ],
)
def test_unknown(name, sentence):
  with pytest.raises(errors.UsageError, match=sentence):
    adapters.create(f'{old_envs.__name__}:{name}')


def make_scaled(scale=1):
  env = old_envs.Old()
  env.observation_space = gym.spaces.Box(-scale, scale, (2,), np.float32)
  return env


def test_settings_of_functions():
  """They are arguments; what exists already takes none."""
  name = f'{__name__}:make_scaled'
  found = [
    adapters.create(name, scale=3),
    continuous.make(make_scaled, settings={'scale': 3}),
  ]
  for env in found:
    assert env.observation_space.high[0] == 3
  with pytest.raises(errors.EnvError, match='speed'):
    adapters.create(name, speed=3)
  with pytest.raises(errors.UsageError, match='exists already'):
    adapters.create(make_scaled(), scale=3)


class Unseeded(gymnasium.Wrapper):
  """Only `reset` lacks arguments."""

  def reset(self):
    return self.env.reset()


class Alone(Unseeded):
  """What is around gymnasium has the interface of gym."""

  def reset(self):
    return super().reset()[0]

  def step(self, action):
    observ, reward, terminated, truncated, info = self.env.step(action)
    return observ, reward, terminated or truncated, info


@pytest.mark.parametrize('kind', [Unseeded, Alone])
@pytest.mark.parametrize('inner', [old_envs.Renamed, 'Pendulum-v1'])
def test_wrappers_with_older_interfaces(kind, inner):
  """Around whatever, below those of gymnasium, and in sessions."""
  make = gymnasium.make if isinstance(inner, str) else evaluation.to_gymnasium
  limited = lambda: gymnasium.wrappers.TimeLimit(kind(make(inner)), 5)
  wrapper = lambda env: gymnasium.wrappers.TimeLimit(kind(env), 5)
  for env in (
    adapters.create(limited),
    adapters.create(limited()),
    adapters.wrap(wrapper, adapters.create(inner)),
  ):
    first, done, info = play(env, 3, 5)
    assert done and info['truncated'] and adapters.is_old(env)
    np.testing.assert_array_equal(play(env, 3, 5)[0], first)
    assert (play(env, 4, 5)[0][0] != first[0]).any()


class Doubled(gym.ObservationWrapper):
  def observation(self, observation):
    return 2 * observation


class WithInfo(gym.Wrapper):
  def reset(self, **given):
    observation, info = self.env.reset(**given)
    return 2 * observation, info


@pytest.mark.parametrize('kind', [Doubled, WithInfo])
def test_wrappers_of_gym_around_gymnasium(kind):
  """Also those that expect no info, as `reset` of gym has it on request."""
  plain = adapters.create('Pendulum-v1')
  env = adapters.create(
    lambda: kind(gym.Wrapper(gymnasium.make('Pendulum-v1')))
  )
  first, done, info = play(env, 3, 200)
  np.testing.assert_array_equal(first[0], 2 * play(plain, 3)[0][0])
  assert done and info['truncated']
  assert (play(env, 4)[0][0] != first[0]).any()


def test_spaces_of_gym_in_gymnasium():
  """They become gymnasium's, as old ones do not reach another process."""
  parts = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Discrete(3)

  class Mixed(type(gymnasium.make('CartPole-v1').unwrapped)):
    def __init__(self):
      super().__init__()
      self.observation_space = gym.spaces.Dict(dict(zip('ab', parts)))
      self.action_space = parts[1]

  env = adapters.create(Mixed)
  env.seed(0)
  for space in env.observation_space, env.action_space:
    assert isinstance(space, gymnasium.Space)
    assert pickle.loads(pickle.dumps(space)) == space
  assert env.observation_space['a'].contains(np.zeros(3, np.float32))


@pytest.mark.parametrize('library', [gym, gymnasium])
@pytest.mark.parametrize('process', [False, True])
def test_batches_without_wrappers(library, process):
  """The interface is that of the wrappers, which may be left out."""

  def make():
    return library.make('Pendulum-v1')

  envs = [external.ExternalProcess(make) if process else make()]
  batch = batch_env.BatchEnv(envs, blocking=not process)
  assert batch.reset().shape == (1, 3)
  observ, reward, done, info = batch.step(np.zeros((1, 1), np.float32))
  assert observ.shape == (1, 3) and reward.shape == (1,)
  assert not done[0] and info == ({},)
  batch.close()


def test_a_space_that_has_drawn_goes_to_a_process():
  made = old_envs.Old()
  made.action_space.sample()
  env = external.ExternalProcess(lambda: made)
  assert env.reset().shape == (2,)
  env.close()


@pytest.mark.parametrize('pair', [lambda x: (x, None), lambda x: [x, {}]])
def test_resets_whose_info_is_missing(pair):
  """It is not used; `spec` may be something else, too."""

  class Mine(type(gymnasium.make('Pendulum-v1').unwrapped)):
    spec = 'mine'

    def reset(self, **given):
      return pair(super().reset(**given)[0])

  env = wrappers.Guard(adapters.create(Mine), 'it')
  assert env.reset().shape == (3,) and env.requested_id == 'Mine'
