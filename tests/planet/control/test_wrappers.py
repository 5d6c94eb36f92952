"""Wrappers of PlaNet, against `planet/wrappers` (.npz and .json).

Numbers agree to 1e-5; names, types, errors and flags are the same.
"""

import os
import types
import unittest.mock

import gymnasium
import numpy as np
import pytest

from agents.envs import adapters, spaces
from agents.envs.wrappers import Guard, OneHotAction
from agents.run import errors
from planet.control import wrappers
from tests import golden, scripted_envs
from tests.planet.control.recorded import make, play

DATA = golden.load('planet/wrappers')
INFO = golden.load_json('planet/wrappers')


@pytest.mark.parametrize('amount', [1, 2, 3])
def test_action_repeat(amount):
  """Sums of rewards, early end, and the actions inside; 1e-5."""
  env = make()
  observs, rewards, dones = play(wrappers.ActionRepeat(env, amount))
  golden.assert_all_close(
    dict(
      state=np.stack([x['state'] for x in observs]),
      reward=np.array(rewards),
      done=np.array(dones),
      inner_actions=np.stack(env.actions),
    ),
    DATA.below(f'out/action_repeat_{amount}'),
  )


def test_normalize_actions():
  """Only dimensions with two finite bounds are mapped; 1e-5."""
  inner = make()
  env = wrappers.NormalizeActions(inner)
  play(env)
  golden.assert_all_close(
    dict(
      low=env.action_space.low,
      high=env.action_space.high,
      inner_actions=np.stack(inner.actions).astype(np.float32),
    ),
    DATA.below('out/normalize_actions'),
  )


@pytest.mark.parametrize('name, limit', [('1', 1), ('3', 3), ('longer', 11)])
def test_maximum_duration(name, limit):
  """Done flags for limits below and above the seven steps of the inside."""
  _, _, dones = play(wrappers.MaximumDuration(make(), limit))
  assert dones == DATA[f'out/maximum_duration_{name}/done'].tolist()


def test_maximum_duration_needs_resets():
  """Before the first step, and after the limit."""
  env = wrappers.MaximumDuration(make(), 2)
  with pytest.raises(RuntimeError, match='Must reset'):
    env.step(DATA['in/actions'][0])
  play(env)
  with pytest.raises(RuntimeError, match='Must reset'):
    env.step(DATA['in/actions'][0])


@pytest.mark.parametrize('limit', [2, 5, 12])
def test_minimum_duration(limit):
  """Done flags of an environment that wants to end after three steps."""
  env = make(length=INFO['minimum_duration_inner_length'])
  _, _, dones = play(wrappers.MinimumDuration(env, limit))
  assert dones == DATA[f'out/minimum_duration_{limit}/done'].tolist()


def test_minimum_duration_needs_a_reset():
  with pytest.raises((RuntimeError, TypeError)):
    wrappers.MinimumDuration(make(), 2).step(DATA['in/actions'][0])


def test_pad_actions():
  """Common bounds of three spaces, and what arrives inside; 1e-5."""
  boxes = []
  for low, high in zip(DATA['in/pad/lows'], DATA['in/pad/highs']):
    valid = ~np.isnan(low)
    boxes.append(spaces.box(low[valid], high[valid]))
  inner = make(low=boxes[0].low, high=boxes[0].high)
  env = wrappers.PadActions(inner, spaces=boxes)
  env.reset()
  env.step(np.arange(4, dtype=np.float32))
  golden.assert_all_close(
    dict(
      low=env.action_space.low,
      high=env.action_space.high,
      inner_action=inner.actions[0],
    ),
    DATA.below('out/pad'),
  )
  assert env.magic == 'hello'
  with pytest.raises(AssertionError):
    wrappers.PadActions(inner, [spaces.box([[0]], [[1]])])


def test_attributes_are_forwarded():
  """Through two wrappers; unknown ones are an AttributeError."""
  env = wrappers.ActionRepeat(wrappers.ConvertTo32Bit(make()), 2)
  assert env.magic == INFO['forward']
  with pytest.raises(AttributeError):
    _ = env.missing


@pytest.mark.parametrize(
  'name, dtype',
  [
    ('same', np.uint8),
    ('down', np.uint8),
    ('up', np.uint8),
    ('float_source', np.float32),
    ('float_source_down', np.float64),
  ],
)
def test_pixels(name, dtype):
  """Images resized and converted; at most 2 percent differ, by one."""
  inner = make(image_dtype=dtype)
  inner.reset()
  golden.assert_close(inner.render(), DATA[f'in/pixels_{name}/render_t0'])
  size = tuple(DATA[f'cfg/pixels_{name}/size'])
  env = wrappers.PixelObservations(inner, size, np.uint8, 'image')
  observs, _, _ = play(env, DATA['in/actions'][:2])
  images = np.stack([x['image'] for x in observs])
  expected = DATA[f'out/pixels_{name}/image']
  assert (images.shape, images.dtype) == (expected.shape, expected.dtype)
  difference = np.abs(images.astype(int) - expected)
  assert difference.max() <= 1 and (difference > 0).mean() <= 0.02
  assert all('state' in x for x in observs)
  space = env.observation_space.spaces
  image = space['image']
  assert INFO[f'pixels_{name}_space'] == [
    str(image.shape),
    str(image.dtype),
    image.high.max(),
    sorted(space),
  ]


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_pixels_as_floats(dtype):
  env = wrappers.PixelObservations(make(), (6, 8), dtype)
  image = env.reset()['image']
  assert image.dtype == dtype
  golden.assert_close(image, env.render() / dtype(255))
  assert env.observation_space.spaces['image'].contains(image)


def test_pixels_that_the_environment_draws_over():
  inner, canvas = make(), np.zeros((6, 8, 3), np.uint8)
  env = wrappers.PixelObservations(inner, (6, 8))
  inner.render = lambda mode: canvas
  image = env.reset()['image']
  canvas[:] = 1
  assert not image.any()


def test_impossible_pixels():
  """No dictionary, a key that exists, integers, and floats up to 255."""
  with pytest.raises(AssertionError):
    wrappers.PixelObservations(scripted_envs.VectorEnv(), (6, 8))
  with pytest.raises(AssertionError, match='already present'):
    wrappers.PixelObservations(make(), (6, 8), np.uint8, 'state')
  env = wrappers.PixelObservations(make(image_dtype=np.int32), (6, 8))
  with pytest.raises(NotImplementedError, match='int32'):
    env.reset()
  inner = make()
  env = wrappers.PixelObservations(inner, (6, 8))
  inner.render = lambda mode: np.full((6, 8, 3), 255.0)
  with pytest.raises(errors.EnvError, match='255'):
    env.reset()


@pytest.mark.parametrize('dtype', INFO['convert_dtypes'])
def test_convert_to_32_bit(dtype):
  """Types of observations and rewards; rewards have no dimensions."""
  env = make(observe=lambda t: {'state': np.array([t, 2], dtype)})
  env = wrappers.ConvertTo32Bit(env)
  observ = env.reset()
  _, reward, _, _ = env.step(DATA['in/actions'][0])
  expected = INFO['convert_dtypes'][dtype]
  assert observ['state'].dtype == expected['obs']
  assert type(reward).__name__ == expected['reward_type']
  assert reward.dtype == expected['reward'] and reward.shape == ()
  golden.assert_close(reward, np.float32(DATA['in/rewards'][0]))


def test_what_is_not_finite_is_refused():
  env = make(observe=lambda t: {'state': np.array([np.nan, 1])})
  with pytest.raises(ValueError, match='NaN observation .* in ScriptedEnv'):
    wrappers.ConvertTo32Bit(env).reset()
  env = wrappers.ConvertTo32Bit(make(rewards=[np.inf]))
  env.reset()
  with pytest.raises(ValueError, match='Infinite reward'):
    env.step(DATA['in/actions'][0])


def make_three_keys():
  """Entries a [t, 1], b [2, 3, t] and c of bytes."""
  return make(
    observe=lambda t: dict(
      a=np.float32([t, 1]), b=np.float32([2, 3, t]), c=np.zeros(2, np.uint8)
    ),
    space=spaces.dictionary(
      dict(
        a=spaces.box([-1] * 2, [1] * 2),
        b=spaces.box([0] * 3, [3] * 3),
        c=spaces.box([0] * 2, [255] * 2, np.uint8),
      )
    ),
  )


def test_concat_observation():
  """Entries b and a in this order, and their bounds; 1e-5."""
  env = wrappers.ConcatObservation(make_three_keys(), ['b', 'a'])
  golden.assert_all_close(
    dict(
      obs=np.stack(play(env, DATA['in/actions'][:2])[0]),
      low=env.observation_space.low,
      high=env.observation_space.high,
    ),
    DATA.below('out/concat'),
  )
  with pytest.raises(KeyError, match='uint8'):
    wrappers.ConcatObservation(make_three_keys(), ['a', 'c'])


def test_select_observations():
  """Keys of resets, steps and the space."""
  env = wrappers.SelectObservations(make_three_keys(), ['c', 'a'])
  observs, _, _ = play(env, DATA['in/actions'][:1])
  for observ in observs:
    assert sorted(observ) == sorted(INFO['select_keys'])
  assert sorted(env.observation_space.spaces) == INFO['select_space']


def make_list():
  """Observations are the list [t, 2]."""
  space = spaces.box([-1, -1], [1, 1])
  return make(observe=lambda t: [t, 2], space=space)


def test_observation_dict():
  """Keys, types and space."""
  env = wrappers.ObservationDict(make_list(), 'k')
  expected = INFO['observation_dict']
  for observ in play(env, DATA['in/actions'][:1])[0]:
    assert list(observ) == expected['keys']
    assert type(observ['k']).__name__ == expected['type']
  assert sorted(env.observation_space.spaces) == expected['space']


def test_observation_to_render():
  """The image is rendered instead of observed."""
  inner = make(observe=lambda t: {'image': np.full((2, 2, 3), t), 'x': 1})
  env = wrappers.ObservationToRender(inner)
  expected = INFO['observation_to_render']
  assert list(env.reset()) == expected['keys']
  assert (env.render('rgb_array') == 0).all()
  env.step(DATA['in/actions'][0])
  assert (env.render('rgb_array') == expected['render_after_step']).all()
  assert list(env.observation_space.spaces) == expected['space']


def test_overwrite_render():
  """The function gets the environment inside."""
  inner = make()
  inner.reset()
  env = wrappers.OverwriteRender(inner, lambda env, *unused: env.t + 100)
  assert env.render('rgb_array') == INFO['overwrite_render']


def test_process_observation():
  """Observation and bounds, both doubled."""
  double = lambda observ: np.asarray(observ, np.float32) * 2
  env = wrappers.ProcessObservation(make_list(), double)
  assert env.reset().tolist() == INFO['process_observation']
  space = env.observation_space
  bounds = [space.low[0], space.high[0]]
  assert bounds == INFO['process_observation_space']


def test_deepmind():
  """Spaces, transitions and images of what the suite offers."""
  env = wrappers.DeepMindWrapper(scripted_envs.FakeSuiteEnv(), (64, 48))
  expected = INFO['deepmind']
  assert sorted(env.reset()) == expected['obs']
  observ, reward, done, info = env.step([0.0])
  assert sorted(observ) == expected['obs']
  assert (reward, done, sorted(info)) == (0.5, False, expected['info'])
  assert sorted(env.observation_space.spaces) == expected['space']
  assert env.action_space.low.tolist() == expected['action_low']
  assert env.action_space.dtype == expected['dtype']
  assert env.metadata == expected['metadata']
  assert [str(x) for x in env.reward_range] == expected['reward_range']
  assert env.render().shape == (64, 48, 3)
  with pytest.raises(ValueError, match='human'):
    env.render(mode='human')


@pytest.mark.parametrize('first', [True, False])
def test_deepmind_reward_may_be_missing(first):
  """Only the first transition of an episode has none."""
  inner = scripted_envs.FakeSuiteEnv()
  inner.step = lambda action: types.SimpleNamespace(
    **vars(inner.reset()), first=lambda: first
  )
  env = Guard(wrappers.DeepMindWrapper(inner), 'mine')
  env.reset()
  if first:
    assert env.step([0.0])[1:3] == (0, False)
  else:
    with pytest.raises(errors.EnvError, match='reward None in step 1'):
      env.step([0.0])


def test_deepmind_composer():
  """Locomotion and manipulation have their generator in the environment."""
  inner = scripted_envs.FakeSuiteEnv()
  inner.random_state = np.random.RandomState(0)
  image = types.SimpleNamespace(shape=(64, 64, 3), dtype=np.dtype(np.uint8))
  spec = {**inner.observation_spec(), 'camera': image}
  inner.observation_spec = lambda: spec
  env = wrappers.DeepMindWrapper(inner)
  env.seed(3)
  assert inner.random_state.rand() == np.random.RandomState(3).rand()
  camera = env.observation_space['camera']
  assert camera == gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)
  assert env.observation_space['position'].dtype == np.float32
  inner.action_spec = lambda: [1, 2]
  with pytest.raises(errors.UsageError, match='several agents'):
    wrappers.DeepMindWrapper(inner)


def test_deepmind_motors_without_limits():
  """MuJoCo gives them 1e10, to which no action should be scaled."""
  inner = scripted_envs.FakeSuiteEnv()
  inner.action_spec = lambda: types.SimpleNamespace(
    minimum=np.array([-1e10, -2]), maximum=np.array([1e10, 3]), shape=(2,)
  )
  env = wrappers.DeepMindWrapper(inner)
  assert env.action_space.low.tolist() == [-np.inf, -2]
  assert env.action_space.high.tolist() == [np.inf, 3]
  inner.step = received = unittest.mock.Mock(wraps=inner.step)
  wrappers.NormalizeActions(env).step(np.float32([0.5, 0.5]))
  assert received.call_args.args[0].tolist() == [0.5, 1.75]


def test_deepmind_actions_that_are_whole():
  """A task of one's own gets a gear or a choice, not a fraction."""
  specs = pytest.importorskip('dm_env.specs')
  inner = scripted_envs.FakeSuiteEnv()
  gears = specs.BoundedArray((1,), np.int32, 0, 4)
  inner.action_spec = lambda: gears
  inner.step = received = unittest.mock.Mock(wraps=inner.step)
  env = wrappers.DeepMindWrapper(inner)
  wrappers.NormalizeActions(env).step(np.float32([0.4]))
  gears.validate(received.call_args.args[0])
  assert received.call_args.args[0].tolist() == [3]
  inner.action_spec = lambda: specs.DiscreteArray(3)
  env = OneHotAction(wrappers.DeepMindWrapper(inner))
  assert env.action_space.shape == (3,)
  env.step(np.float32([0, 1, 0]))
  assert received.call_args.args[0] == 1


@pytest.mark.parametrize(
  'discount, last, expected',
  [
    (1.0, True, True),
    (0.0, True, None),
    (None, True, None),
    (1.0, False, None),
  ],
)
def test_deepmind_time_limits(discount, last, expected):
  """Only a discount of zero is the end of a task."""
  inner = scripted_envs.FakeSuiteEnv()
  step = types.SimpleNamespace(
    **{**vars(inner.step([0.0])), 'discount': discount, 'last': lambda: last}
  )
  inner.step = lambda action: step
  _, _, done, info = wrappers.DeepMindWrapper(inner).step([0.0])
  assert (done, info.get('truncated')) == (last, expected)


def test_deepmind_in_a_wrapper_of_the_user():
  """Seeds what is within, if that can be seeded; draws with any camera."""
  inner = scripted_envs.FakeSuiteEnv()
  known = ('action_spec', 'observation_spec', 'physics')
  outer = types.SimpleNamespace(
    inner=inner, **{x: getattr(inner, x) for x in known}
  )
  env = adapters.adapt(outer)
  env.seed(3)
  inner.task = types.SimpleNamespace(random=np.random.RandomState(0))
  env.seed(3)
  assert inner.task.random.rand() == np.random.RandomState(3).rand()
  inner.physics.render = lambda height, width, camera_id: camera_id
  for count, expected in (0, -1), (1, 0):
    inner.physics.model = types.SimpleNamespace(ncam=count)
    assert adapters.adapt(outer).render() == expected


def test_external_process():
  """Environment in a process of its own, under the name of the fork."""
  env = wrappers.ExternalProcess(scripted_envs.VectorEnv)
  try:
    assert env.reset().tolist() == [0, 2]
    observ, reward, done, _ = env.step(np.float32([0.5]), blocking=False)()
    assert (observ.tolist(), reward, done) == ([1, 2], 0.0, False)
    assert env.call('reset')().tolist() == [0, 2]
    assert env.observation_space.shape == (2,)
    assert env.pid != os.getpid()
  finally:
    env.close()
    env.close()
