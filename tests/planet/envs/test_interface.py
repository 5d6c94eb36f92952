"""Actions and observations of environments, as trained agents have them."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.envs import batches, images
from agents.run import errors
from planet.envs import constructors, gym_pixels, interface

Box, Discrete = gymnasium.spaces.Box, gymnasium.spaces.Discrete
Dict = gymnasium.spaces.Dict


class Env(gymnasium.Env):
  """Environment that keeps the last action."""

  render_mode = 'rgb_array'

  def __init__(self, action_space, observation_space=None, image=None):
    self.action_space = action_space
    self.observation_space = observation_space or Box(-1, 1, (2,))
    self.image = np.zeros((32, 32, 3), np.uint8) if image is None else image
    self.taken = None

  def reset(self, seed=None, options=None):
    return self.observation_space.sample(), {}

  def step(self, action):
    assert action in self.action_space, (action, self.action_space)
    self.taken = action
    return self.observation_space.sample(), 0.0, False, False, {}

  def render(self):
    return self.image


SPACES = {
  'two': Box(-2, 2, (3,), np.float32),
  'fifth': Box(-0.2, 0.2, (2,), np.float64),
  'different': Box(np.array([-2, 0.1]), np.array([-0.2, 7]), dtype=np.float32),
  'some without': Box(np.float32([-np.inf, 0]), np.float32([np.inf, 5])),
  'one-sided': Box(np.float32([-1, 0]), np.float32([np.inf, 5])),
  'integers': Box(-3, 4, (2,), np.int64),
  'bytes': Box(0, 255, (2,), np.uint8),
  'constant': Box(2, 2, (1,), np.float32),
  'discrete': Discrete(4),
  'from three': Discrete(3, start=3),
}


@pytest.mark.parametrize('name', SPACES)
def test_actions_are_those_of_the_training(name):
  """To the bit, for one action and for several; stored and restored."""
  inner = Env(SPACES[name])
  env = gym_pixels.make(inner, 1, 10, pixels=False)
  stored = interface.find(env).to_plain()
  own = interface.Interface.from_plain(stored)
  assert own.action_space == inner.action_space
  rng = np.random.RandomState(0)
  low, high = np.full((2, *env.action_space.shape), [[-1], [1]])
  units = rng.uniform(-1, 1, (50, *env.action_space.shape)).astype(np.float32)
  units = np.concatenate([units, np.float32([low, high])])
  several = own.to_actions()(units)
  env.reset()
  direct = gym_pixels.make(inner, 1, 100, pixels=False, own_actions=True)
  assert direct.action_space == inner.action_space
  for unit, action in zip(units, several):
    env.reset()
    env.step(unit)
    one = own.to_actions()(unit)
    assert np.array_equal(one, inner.taken) and np.array_equal(one, action)
    assert np.asarray(one).dtype == inner.action_space.dtype
    direct.reset()
    direct.step(one)
    assert np.array_equal(one, inner.taken)
    again = own.to_actions()(own.from_action(one))
    np.testing.assert_allclose(again, one, rtol=1e-5, atol=1e-6)


def test_normalized_actions_are_not_scaled():
  inner = Env(Box(-5, 5, (1,)))
  inner.normalized_actions = True
  own = interface.find(gym_pixels.make(inner, 1, 10, pixels=False))
  assert own.to_actions()(np.float32([0.5])) == 0.5


@pytest.mark.parametrize('other', [lambda action: action, np.zeros(2)])
def test_other_attributes_of_this_name(other):
  """Methods and arrays of users say nothing about the actions."""
  inner = Env(Box(-5, 5, (1,)))
  inner.normalized_actions = inner.steps_after_end = other
  own = interface.find(gym_pixels.make(inner, 1, 10, pixels=False))
  assert own.to_actions()(np.float32([0.5])) == 2.5


def make_reader(env, keys=('image',), **kwargs):
  """Reader of a trained agent, with the environment of the training."""
  kwargs = {'image_size': 32, 'state': 'state' in keys, **kwargs}
  made = gym_pixels.make(env, 1, 10, pixels='image' in keys, **kwargs)
  parts = made.observation_space.spaces
  shapes = {key: parts[key].shape for key in keys}
  return interface.Reader(interface.find(made), keys, shapes), made


IMAGES = np.random.RandomState(0)


@pytest.mark.parametrize(
  'image',
  [
    IMAGES.randint(0, 255, (32, 32, 3), np.uint8),
    IMAGES.randint(0, 255, (48, 80, 3), np.uint8),
    IMAGES.uniform(0, 1, (48, 80, 3)).astype(np.float32),
    IMAGES.uniform(0, 1, (20, 20)),
    IMAGES.randint(0, 255, (480, 640, 4), np.uint8),
  ],
)
def test_images_of_any_size_and_dtype(image):
  reader, env = make_reader(Env(Box(-1, 1, (1,)), image=image))
  expected = env.reset()['image']
  for given in (image, {'image': image}):
    found = reader.read(given)
    assert np.array_equal(found, expected) and found.dtype == np.uint8
  several = np.stack([image] * 2)
  if image.ndim == 3:
    assert np.array_equal(reader.read(several), np.stack([expected] * 2))
  if image.dtype == np.uint8:
    assert np.array_equal(reader.read(image.astype(int)), expected)


@pytest.mark.parametrize('low, high', [(0, 1), (-1, 1), (0, 255)])
@pytest.mark.parametrize('shape', [(3, 40, 40), (40, 40), (40, 40, 3)])
def test_images_that_are_observed(low, high, shape):
  """Their floats have the range that the environment declares."""
  space = Box(low, high, shape, np.float32)
  if len(shape) == 2:
    space = Box(0, 255, shape, np.uint8)
  for observed in (space, Dict({'camera': Dict({'rgb': space}), 'x': space})):
    env = Env(Box(-1, 1, (1,)), observed)
    reader, made = make_reader(env, observation_is_image=observed is space)
    if interface.find(made).picture is None:
      continue
    observation, _ = env.reset()
    env.reset = lambda x=observation, **_: (x, {})
    expected = made.reset()['image']
    assert np.array_equal(reader.read(observation), expected)
  image = space.sample()
  if space.dtype == np.float32:
    as_bytes = IMAGES.randint(0, 255, shape, np.uint8)
    reader, _ = make_reader(
      Env(Box(-1, 1, (1,)), space), observation_is_image=True
    )
    assert reader.read(as_bytes).shape == (32, 32, 3)
    with pytest.raises(errors.UsageError, match='but its space declares'):
      reader.read(image * 2 + (high - low))


def test_bytes_as_floats_stay_the_same():
  as_bytes = np.arange(768, dtype=int).reshape(16, 16, 3) % 256
  space = Box(-1, 1, as_bytes.shape, np.float32)
  found = images.from_observation(np.float32(as_bytes) / 127.5 - 1, space)
  assert np.array_equal(found, as_bytes)


@pytest.mark.parametrize(
  'image, message',
  [
    (np.full((40, 40, 3), 200.0), 'values from 200 to 200; return values from'),
    (np.full((40, 40, 3), -0.5), 'values from -0.5 to'),
    (np.full((40, 40, 3), 300), 'integers has values from 300'),
    (np.zeros((40, 40, 3), bool), 'from bool to uint8'),
    (np.zeros((40, 40, 2), np.uint8), r'\(40, 40, 2\), but the agent was'),
    (np.zeros(5), r'shape \(5,\), but the agent was trained with shape \(32'),
    (np.zeros((0, 4, 3)), r'shape \(0, 4, 3\)'),
    ({'state': np.zeros(2)}, "has no 'image'"),
  ],
)
def test_images_that_are_refused(image, message):
  reader, _ = make_reader(Env(Box(-1, 1, (1,))))
  with pytest.raises(ValueError, match=message):
    reader.read(image)


OBSERVED = {
  'vector': Box(-1, 1, (4,)),
  'matrix': Box(-1, 1, (2, 3)),
  'row': Box(-1, 1, (1, 6)),
  'integers': Box(0, 9, (3,), np.int64),
  'discrete': Discrete(3),
  'bits': gymnasium.spaces.MultiBinary(3),
  'choices': gymnasium.spaces.MultiDiscrete([3, 2]),
  'dictionary': Dict({'a': Box(-1, 1, (2,)), 'b': Discrete(3)}),
  'state in it': Dict({'state': Box(-1, 1, (2,)), 'b': Box(-1, 1, ())}),
  'tuple': gymnasium.spaces.Tuple([Box(-1, 1, (2,)), Discrete(3, start=1)]),
}


@pytest.mark.parametrize('keys', [('state',), ('image', 'state')])
@pytest.mark.parametrize('name', OBSERVED)
def test_states(name, keys):
  """As the environment returns them, several, and as the model reads them."""
  env = Env(Box(-1, 1, (1,)), OBSERVED[name])
  reader, made = make_reader(env, keys)
  observation, _ = env.reset()
  env.reset = lambda **_: (observation, {})
  expected = made.reset()
  flat = np.concatenate([np.ravel(expected[x]) for x in keys])
  given = observation
  if 'image' in keys:
    is_dict = isinstance(observation, dict)
    given = observation if is_dict else {'state': observation}
    given = {**given, 'image': env.render()}
    if isinstance(observation, tuple):
      # What is rendered has no place in it.
      given = {'state': flat[-expected['state'].size :], 'image': env.render()}
  found = reader.read(given)
  assert np.array_equal(found, flat.astype(np.float32))
  assert found.dtype == np.float32
  twice = lambda x: np.stack([x, x])
  several = batches._map(twice, given, OBSERVED[name])
  assert np.array_equal(reader.read(several), np.stack([found] * 2))
  assert np.array_equal(reader.read(found), found)
  assert np.array_equal(
    reader.read(np.stack([found] * 2)), np.stack([found] * 2)
  )


@pytest.mark.parametrize(
  'wrong, message',
  [
    ({'b': 3}, r'The b is 3, but must be in Discrete\(3\)'),
    ({'b': -1}, 'The b is -1'),
    ({'c': [2, 0]}, 'The c is .*MultiDiscrete'),
    ({'c': [0, 1, 1]}, r'The c has shape \(3,\), but must have \(2,\)'),
  ],
)
def test_states_that_are_refused(wrong, message):
  """No one-hot vector could show them."""
  parts = {'b': Discrete(3), 'c': gymnasium.spaces.MultiDiscrete([2, 3])}
  space = Dict({'a': Box(-1, 1, (2,)), **parts})
  reader, _ = make_reader(Env(Box(-1, 1, (1,)), space), ['state'])
  observation = space.sample()
  assert reader.read(observation).shape == (10,)
  with pytest.raises(ValueError, match=message):
    reader.read({**observation, **wrong})


def test_actions_of_other_bounds():
  """An agent has the same effect in an environment with other bounds."""
  own = interface.Interface(None, Box(-2, 2, (1,)), None, True)
  inner = Env(Box(0, 10, (1,)))
  env = gym_pixels.make(inner, 1, 10, pixels=False)
  env = interface.RescaleActions(env, own)
  assert env.action_space == own.action_space
  env.reset()
  env.step(np.float32([1]))
  assert inner.taken == 7.5


def test_one_of_several_tasks():
  """Vectors are as long as the longest action, which is cut."""
  inner = Env(SPACES['fifth'])
  make = functools.partial(gym_pixels.make, inner, 4, 10, image_size=32)
  longest = [SPACES['two'], inner.action_space]
  together = functools.partial(constructors.unified_env, make, longest)
  env = together()
  assert env.action_space.shape == (3,)
  own = interface.find(env)
  action = own.to_actions()(np.float32([1, -1, 0.3]))
  env.reset()
  env.step(np.float32([1, -1, 0.3]))
  assert np.array_equal(inner.taken, action)
  direct = constructors.with_own_actions(together)()
  assert direct.action_space == inner.action_space
  direct.reset()
  direct.step(action)
  assert np.array_equal(inner.taken, action)
