"""Episodes that are recorded while they are played."""

import datetime
import functools
import os
import re

import gymnasium
import numpy as np
import pytest

from agents.run import errors, stopping
from planet.control import random_episodes, wrappers
from planet.envs import collect_dataset, constructors, gym_pixels
from planet.tools import loaders, numpy_episodes
from tests import golden, scripted_envs
from tests.planet.control import recorded


def read_all(folder):
  """List of the episodes in a folder, as dicts of arrays."""
  episodes = []
  for name in sorted(os.listdir(folder)):
    with np.load(os.path.join(folder, name)) as archive:
      episodes.append({key: archive[key] for key in archive.files})
  return episodes


def test_recorded_episode(tmp_path):
  """`planet/wrappers`, out/collect: name, keys, types; numbers to 1e-5.

  Rewards are float64, the first action and reward zero.
  """
  env = wrappers.PixelObservations(recorded.make(), (6, 8))
  folder = tmp_path / 'new'
  env = wrappers.CollectGymDataset(wrappers.ConvertTo32Bit(env), str(folder))
  recorded.play(env)
  (name,) = os.listdir(folder)
  pattern = golden.load_json('planet/wrappers')['collect_filename_regex']
  assert re.match(pattern, name)
  (episode,) = read_all(folder)
  expected = golden.load('planet/wrappers').below('out/collect')
  golden.assert_all_close(episode, expected)
  assert {k: v.dtype for k, v in episode.items()} == {
    k: v.dtype for k, v in expected.items()
  }


def test_episode_is_in_the_info_without_a_folder():
  env = wrappers.CollectGymDataset(scripted_envs.ScriptedEnv(2), None)
  env.reset()
  assert 'episode' not in env.step(np.float32([0.5]))[-1]
  episode = env.step(np.float32([-0.5]))[-1]['episode']
  assert episode['action'].tolist() == [[0], [0.5], [-0.5]]
  assert episode['state'].tolist() == [[0, 0], [1, 0.5], [2, 1]]


@pytest.mark.parametrize('blocking', [True, False])
def test_plain_observations(tmp_path, blocking):
  """Arrays are recorded as `observ` and handed out as they are."""

  class Plain(scripted_envs.ScriptedEnv):
    def step(self, action, blocking=True):
      result = super().step(action)
      return result if blocking else lambda: result

    def reset(self, blocking=True):
      observ = super().reset()
      return observ if blocking else lambda: observ

  env = wrappers.CollectGymDataset(
    Plain(2, observe=lambda t: np.float32([t, 5])), str(tmp_path)
  )
  if blocking:
    observs = [env.reset(), env.step(np.float32([1]))[0]]
    info = env.step(np.float32([1]))[-1]
  else:
    observs = [
      env.reset(blocking=False)(),
      env.step(np.float32([1]), blocking=False)()[0],
    ]
    info = env.step(np.float32([1]), blocking=False)()[-1]
  assert [x.tolist() for x in observs] == [[0, 5], [1, 5]]
  (episode,) = read_all(tmp_path)
  assert sorted(episode) == ['action', 'observ', 'reward']
  assert episode['observ'].tolist() == [[0, 5], [1, 5], [2, 5]]
  assert 'episode' not in info


@pytest.mark.parametrize(
  'applied', [np.zeros(2), 0.5, None, 'left', [np.nan], [5.0], [[1], [1, 2]]]
)
def test_applied_actions_that_are_none(applied, tmp_path):
  """Environments of users may call other things by this name."""

  class Applying(scripted_envs.ScriptedEnv):
    def step(self, action):
      return *super().step(action)[:3], {'applied_action': applied}

  env = wrappers.CollectGymDataset(Applying(2), str(tmp_path))
  env.reset()
  with pytest.raises(errors.EnvError, match='Applying gives .* shape .1,. '):
    env.step(np.float32([0]))


def test_values_that_are_no_numbers(tmp_path):
  """An error instead of a file that nobody can read."""
  inner = scripted_envs.ScriptedEnv(
    1, observe=lambda t: {'state': np.array([None, t])}
  )
  env = wrappers.CollectGymDataset(inner, str(tmp_path))
  env.reset()
  with pytest.raises(RuntimeError, match="'state'.* has values that are not"):
    env.step(np.float32([0]))
  assert os.listdir(tmp_path) == []


def test_promises(tmp_path):
  """Without blocking, transitions are recorded when they are collected."""

  class Promising(scripted_envs.ScriptedEnv):
    def step(self, action, blocking=True):
      return functools.partial(super().step, action)

    def reset(self, blocking=True):
      return super().reset

  env = wrappers.CollectGymDataset(Promising(2, [1.0, 2.0]), str(tmp_path))
  assert env.reset(blocking=False)()['state'].tolist() == [0, 0]
  for _ in range(2):
    promise = env.step(np.float32([1]), blocking=False)
    assert os.listdir(tmp_path) == []
    promise()
  (episode,) = read_all(tmp_path)
  assert episode['reward'].tolist() == [0, 1, 2]


def test_random_episodes(tmp_path):
  """Uniform actions; episodes are returned, or written."""
  make = functools.partial(
    scripted_envs.ScriptedEnv, 50, [0.25] * 50, [-1, 0], [1, 4]
  )
  episodes = random_episodes(make, 2)
  assert len(episodes) == 2
  actions = np.concatenate([x['action'][1:] for x in episodes])
  assert actions.shape == (100, 2)
  assert (np.abs(actions.mean(0) - [0, 2]) < 0.5).all()
  for episode in episodes:
    assert (episode['action'][0] == 0).all()
    assert episode['reward'].tolist() == [0] + [0.25] * 50
  # Those on disk need no memory.
  assert random_episodes(make, 1, str(tmp_path), action_repeat=3) == []
  (episode,) = read_all(tmp_path)
  assert episode.pop('action_repeat') == 3
  assert {x: y.shape for x, y in episode.items()} == {
    x: y.shape for x, y in episodes[0].items()
  }


def test_random_episodes_close_the_environment(monkeypatch):
  """Also if something fails, or the user asks to stop."""
  closed = []

  class Env(scripted_envs.ScriptedEnv):
    def close(self):
      closed.append(True)

  random_episodes(Env, 1)
  assert len(closed) == 1
  monkeypatch.setattr(stopping, 'requested', lambda: True)
  with pytest.raises(stopping.StopRequested):
    random_episodes(Env, 1)
  assert len(closed) == 2


def test_names_sort_by_time(tmp_path):
  """Also within a second."""
  paths = [
    collect_dataset.write_episode({'reward': np.zeros(2)}, str(tmp_path))
    for _ in range(20)
  ]
  assert loaders.list_episodes(str(tmp_path)) == paths


def test_names_of_seeded_episodes(tmp_path):
  """They sort in the same order, whichever environment is done first."""
  began = datetime.datetime.now()

  def play(folder, order):
    envs = {
      seed: wrappers.CollectGymDataset(
        scripted_envs.ScriptedEnv(1), str(folder), 1, began
      )
      for seed in (7, 8)
    }
    for seed, env in envs.items():
      env.seed(seed)
    for seed in order:
      envs[seed].reset()
      envs[seed].step(np.float32([seed / 10]))
    return [x['action'][1, 0] * 10 for x in read_all(folder)]

  expected = [7, 8, 7, 8]
  np.testing.assert_allclose(play(tmp_path / 'a', [7, 8, 8, 7]), expected)
  np.testing.assert_allclose(play(tmp_path / 'b', [8, 8, 7, 7]), expected)
  name = os.listdir(tmp_path / 'a')[0]
  pattern = golden.load_json('planet/wrappers')['collect_filename_regex']
  assert re.match(pattern, name)


class Whole(gymnasium.Env):
  """Whole numbers in the first episode, as integers; later also others."""

  metadata: dict = {}
  render_mode = None
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, dtype=np.float32, kind=np.array):
    self.observation_space = gymnasium.spaces.Box(0, 9, (2,), dtype)
    self._kind, self._episode = kind, 0

  def _observe(self):
    late = self._episode > 1 and self._time > 1
    return self._kind([self._time, 0.5 if late else 0])

  def reset(self, seed=None, options=None):
    self._time, self._episode = 0, self._episode + 1
    return self._observe(), {}

  def step(self, action):
    self._time += 1
    return self._observe(), self._time, self._time == 3, False, {}


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_dtypes_are_those_of_the_space(dtype, tmp_path):
  """Whatever numbers an episode has; rewards are float64."""
  env = gym_pixels.make(Whole(dtype), 1, 100, pixels=False)
  env = constructors.recording_env(lambda: env, str(tmp_path), ['state'], 1)
  for _ in range(3):
    env.reset()
    # Not even actions need the right dtype.
    while not env.step(np.zeros(1))[2]:
      pass
  found = [{k: v.dtype.name for k, v in x.items()} for x in read_all(tmp_path)]
  assert found == 3 * [
    {
      'state': 'float32',
      'action': 'float32',
      'reward': 'float64',
      'action_repeat': 'int64',
    }
  ]
  example = numpy_episodes.episode_reader(loaders.list_episodes(tmp_path)[0])
  read = functools.partial(
    numpy_episodes._read_like, example, numpy_episodes.episode_reader
  )
  files = loaders.list_episodes(tmp_path)
  assert all(loaders.read_episode(read, x) for x in files)


@pytest.mark.parametrize(
  'given, space, stored',
  [
    ('int64', 'float64', 'float64'),
    ('int32', 'float64', 'float32'),
    ('float32', 'float64', 'float32'),
    ('int64', 'uint8', 'uint8'),
    ('bool', 'float32', 'float32'),
    # Fractions are no numbers of the space; nothing is lost.
    ('float32', 'int32', 'float32'),
  ],
)
def test_stored_dtypes(given, space, stored):
  array = collect_dataset._convert(np.ones(2, given), np.dtype(space))
  assert array.dtype.name == stored and array.tolist() == [1, 1]
