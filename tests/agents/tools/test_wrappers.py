"""Wrappers of PPO, against `ppo/wrappers`; see also planet/control."""

import concurrent.futures
import logging
import random
import time

import gymnasium
import numpy as np
import pytest

from agents.envs.wrappers import OneHotAction, OwnRandomness
from agents.run import errors
from agents.tools import wrappers
from agents.tools.mock_environment import MockEnvironment
from tests import golden, scripted_envs


def full_chain(env):
  env = wrappers.RangeNormalize(wrappers.LimitDuration(env, 5))
  return wrappers.ConvertTo32Bit(wrappers.ClipAction(env))


CONSTRUCTORS = {
  'auto_reset': wrappers.AutoReset,
  'action_repeat_3': lambda env: wrappers.ActionRepeat(env, 3),
  'frame_history_stack': lambda env: wrappers.FrameHistory(
    env, [0, 1, 3], False
  ),
  'frame_history_flat': lambda env: wrappers.FrameHistory(env, [0, 2], True),
  'frame_delta': wrappers.FrameDelta,
  'range_normalize': wrappers.RangeNormalize,
  'range_normalize_action_only': lambda env: wrappers.RangeNormalize(
    env, observ=False
  ),
  'range_normalize_observ_only': lambda env: wrappers.RangeNormalize(
    env, action=False
  ),
  'clip_action': wrappers.ClipAction,
  'limit_duration_4': lambda env: wrappers.LimitDuration(env, 4),
  'convert_to_32_bit': wrappers.ConvertTo32Bit,
  'cache_spaces': wrappers.CacheSpaces,
  'full_chain': full_chain,
  'random_start_4': lambda env: wrappers.RandomStart(env, 4),
}


def make_replay(name=None):
  data = golden.load('ppo/wrappers')
  never_done = name in ('frame_history_stack', 'random_start_4')
  return scripted_envs.ReplayEnv(data, data['done'] & (not never_done))


def drive(env, calls, actions):
  """Make the recorded calls; returns observations, rewards, dones."""
  rows, steps = [], 0
  for call in calls:
    if call == 'reset':
      rows.append((env.reset(), np.nan, False))
    else:
      rows.append(env.step(actions[steps % len(actions)])[:3])
      steps += 1
  return zip(*rows)


@pytest.mark.parametrize('name', CONSTRUCTORS)
def test_recorded_calls(name):
  """What comes out, what goes in, and the spaces; rtol 1e-5.

  The inner environment replays `obs`, `reward` and `done`.
  """
  data = golden.load('ppo/wrappers')
  expected, base = data.below(name), make_replay(name)
  if name == 'random_start_4':
    np.random.seed(int(expected['numpy_seed']))
  env = CONSTRUCTORS[name](base)
  observs, rewards, dones = drive(env, expected['calls'], data['actions'])
  golden.assert_close(np.array(observs), expected['observ'])
  golden.assert_close(np.array(rewards, float), expected['reward'])
  assert np.array(dones).tolist() == expected['done'].tolist()
  if len(expected['inner_actions']):
    golden.assert_close(np.array(base.actions), expected['inner_actions'])
  assert base.resets == expected['inner_resets']
  for space in ('observation_space', 'action_space'):
    for bound in ('low', 'high'):
      golden.assert_close(
        getattr(getattr(env, space), bound), expected[f'{space}_{bound}']
      )
  if 'float32' in str(expected['observ_dtype']):
    assert observs[-1].dtype == rewards[-1].dtype == np.float32


def test_every_recording_is_used():
  keys = golden.load('ppo/wrappers')
  recorded = {key.split('/')[0] for key in keys if key.endswith('/calls')}
  assert recorded == set(CONSTRUCTORS)


@pytest.mark.parametrize('name', ['range_normalize', 'clip_action'])
def test_spaces_are_built_once(name):
  env = CONSTRUCTORS[name](make_replay())
  assert env.observation_space is env.observation_space
  assert env.action_space is env.action_space


def test_cached_spaces_are_read_once():
  base = make_replay()
  env = wrappers.CacheSpaces(base)
  assert env.action_space is env.action_space
  assert env.observation_space is env.observation_space
  assert base.accesses == 2


def test_history_of_the_current_frame_only():
  """Frames are fresh even if there is no past."""
  env = wrappers.FrameHistory(MockEnvironment((2,), (1,), 9, 9), [0], False)
  assert env.reset().shape == (1, 2)
  frames = [env.step(np.zeros(1, np.float32))[0] for _ in range(3)]
  assert len({frame.tobytes() for frame in frames}) == 3


def test_history_that_begins_with_integers():
  env = MockEnvironment((2,), (1,), 9, 9)
  reset, env.reset = env.reset, lambda: [reset(), [0, 1]][1]
  history = wrappers.FrameHistory(env, [0, 1], False)
  assert history.reset().tolist() == [[0, 1], [0, 1]]
  env.step = lambda action: (np.float32([0.5, 0.25]), 0.0, False, {})
  assert history.step(0)[0].tolist() == [[0.5, 0.25], [0, 1]]


def test_history_needs_the_current_frame():
  with pytest.raises(KeyError, match='include 0'):
    wrappers.FrameHistory(make_replay(), [1, 2], False)


@pytest.mark.parametrize('duration', [None, 'word', 0, 1.5])
def test_time_limit_that_is_no_number_of_steps(duration):
  with pytest.raises(errors.UsageError, match='duration of LimitDuration'):
    wrappers.LimitDuration(make_replay(), duration)


def test_time_limit_is_no_end():
  """The step that reaches the limit says so, unless the episode ended."""
  for length, truncated in ((3, None), (2, None), (5, True)):
    env = wrappers.LimitDuration(scripted_envs.VectorEnv(length), 3)
    env.reset()
    done = False
    while not done:
      _, _, done, info = env.step(np.zeros(1, np.float32))
    assert info.get('truncated') is truncated


def test_infinite_ranges_cannot_be_normalized(caplog):
  env = scripted_envs.VectorEnv(low=(-np.inf,), high=(np.inf,))
  with pytest.raises(ValueError, match='infinite action range'):
    wrappers.RangeNormalize(env, action=True)
  with caplog.at_level(logging.INFO):
    env = wrappers.RangeNormalize(env)
  assert 'Not normalizing infinite action range.' in caplog.messages
  env.reset()
  env.step(np.float32([5]))
  assert env.actions[0].tolist() == [5]


def test_auto_reset_and_repeat_check_their_arguments():
  with pytest.raises(ValueError, match='1 or more'):
    wrappers.ActionRepeat(make_replay(), 0)


def test_range_of_bytes():
  """They do not overflow; 200 of 255 becomes 2 * 200 / 255 - 1."""
  env = wrappers.ConvertTo32Bit(
    wrappers.RangeNormalize(scripted_envs.BytesEnv())
  )
  expected = np.float32([-1, 2 * 200 / 255 - 1, 1])
  for observ in (env.reset(), env.step(np.zeros(1, np.float32))[0]):
    assert observ.dtype == np.float32
    np.testing.assert_allclose(observ, expected, 1e-6)


def test_largest_number_chooses():
  class Env:
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def step(self, action):
      return action, 0.0, False, {}

  env = OneHotAction(Env())
  assert env.action_space.shape == (3,)
  assert env.step(np.array([-0.5, 0.2, 0.1]))[0] == 6
  env.action_space.seed(0)
  chosen = [env.step(env.action_space.sample())[0] for _ in range(300)]
  assert min(chosen.count(x) for x in (5, 6, 7)) > 70


class Global(scripted_envs.ScriptedEnv):
  """Draws from the generators of the process, and lets other threads run."""

  def step(self, action):
    observ, _, done, info = super().step(action)
    reward = random.random()
    time.sleep(0.002)
    return observ, reward + np.random.uniform(), done, info


def test_own_randomness_in_threads():
  """Seeded environments play the same beside each other as alone."""

  def play(seed):
    env = OwnRandomness(Global(100))
    env.seed(seed)
    env.reset()
    return [env.step(np.zeros(1, np.float32))[1] for _ in range(30)]

  alone = [play(seed) for seed in range(3)]
  with concurrent.futures.ThreadPoolExecutor(3) as pool:
    assert list(pool.map(play, range(3))) == alone
