"""Environments of gymnasium as PlaNet sees them."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.envs import check
from agents.run import errors
from planet.envs import collect_dataset, gym_pixels
from planet.tools import episode_files
from planet.training import episode_folder


def test_discrete_actions():
  env = gym_pixels.make('CartPole-v1', 1, 100, pixels=False)
  assert env.action_space.shape == (2,)
  assert env.reset()['state'].dtype == np.float32
  observ, reward, _, _ = env.step(np.array([0.3, -0.8], np.float32))
  assert observ['state'].shape == (4,) and reward == 1


@pytest.mark.parametrize(
  'observ', [np.array([3, 4]), np.array([[3], [4]], np.uint8), np.float64(3)]
)
def test_vectors_of_any_box(observ):
  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 9, observ.shape, observ.dtype)
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, seed=None, options=None):
      return observ, {}

  env = gym_pixels.make(Env(), 1, 100, pixels=False)
  state = env.reset()['state']
  assert state.dtype == np.float32
  assert state.tolist() == observ.flatten().tolist()
  assert env.observation_space.spaces['state'].contains(state)


def test_choices_that_become_floats():
  """In a later step, where nothing is checked before the training."""

  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(5, start=1)
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, seed=None, options=None):
      return 1, {}

    def step(self, action):
      return 3.0, 0.0, False, False, {}

  env = gym_pixels.make(Env(), 1, 100, pixels=False)
  assert env.reset()['state'].tolist() == [1, 0, 0, 0, 0]
  assert env.step(np.zeros(1))[0]['state'].tolist() == [0, 0, 1, 0, 0]


def test_actions_with_one_bound():
  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))

  env = Env()
  gym_pixels.make(env, 1, 100, pixels=False)
  env.action_space = gymnasium.spaces.Box(0, np.inf, (1,))
  with pytest.raises(errors.UsageError, match='one bound'):
    gym_pixels.make(env, 1, 100, pixels=False)


BOX = gymnasium.spaces.Box
PICTURE = np.arange(64 * 64 * 3, dtype=np.uint8).reshape(64, 64, 3)
BYTES = BOX(0, 255, (64, 64, 3), np.uint8)


class Own(gymnasium.Env):
  """Ends after five steps, and refuses to be stepped then.

  Args:
    observ: Observation.
    space: Its space.
    image: What it renders; without, it has no render_mode.
  """

  metadata = {'render_modes': ['rgb_array']}
  action_space = BOX(-1, 1, (1,), np.float32)

  def __init__(self, observ, space, image=None):
    self.observation_space = space
    self.render_mode = None if image is None else 'rgb_array'
    self._observ, self._image = observ, image

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._left, self.rendered = 5, 0
    return self._observ, {}

  def step(self, action):
    if not self._left:
      raise RuntimeError('reset first')
    self._left -= 1
    return self._observ, 1.0, not self._left, False, {}

  def render(self):
    self.rendered += 1
    return self._image


def look(observ, space, image=None, **kwargs):
  return gym_pixels.make(Own(observ, space, image), 1, 100, **kwargs).reset()


@pytest.mark.parametrize('repeat, least', [(1, 0), (2, 0), (2, 6)])
def test_steps_that_were_played_are_counted(repeat, least, tmp_path):
  """Not repetitions after the end, nor what fills an episode up."""
  env = Own(np.zeros(1), BOX(-1, 1, (1,)))
  env = gym_pixels.make(env, repeat, 100, least, pixels=False)
  env = collect_dataset.CollectGymDataset(env, str(tmp_path), repeat)
  for _ in range(2):
    env.reset()
    done = False
    while not done:
      *_, done, _ = env.step(np.zeros(1, np.float32))
  assert episode_folder.EpisodeLog(str(tmp_path)).count_steps() == 10
  for path in tmp_path.iterdir():
    kinds, _ = episode_files.inspect(str(path))
    assert 'simulator_steps' not in kinds
    assert kinds['reward'].length == 1 + max(least, -(-5 // repeat))


@pytest.mark.parametrize(
  'image, expected',
  [
    (PICTURE, PICTURE),
    (PICTURE[..., 0], PICTURE[..., [0, 0, 0]]),
    (PICTURE[..., :1], PICTURE[..., [0, 0, 0]]),
    (PICTURE[..., [0, 1, 2, 0]], PICTURE),
    (np.full((64, 64, 3), 0.5), np.full((64, 64, 3), 127)),
    (np.full((64, 64), 0.5, np.float32), np.full((64, 64, 3), 127)),
  ],
)
def test_rendered_images(image, expected):
  found = look(np.zeros(1), BOX(-1, 1, (1,)), image)
  assert list(found) == ['image'] and found['image'].dtype == np.uint8
  assert np.array_equal(found['image'], expected)


@pytest.mark.parametrize(
  'observ, space',
  [
    (PICTURE, BYTES),
    (PICTURE[..., 0], BOX(0, 255, (64, 64), np.uint8)),
    (np.moveaxis(PICTURE, -1, 0), BOX(0, 255, (3, 64, 64), np.uint8)),
    (PICTURE / 255 * 2 - 1, BOX(-1, 1, (64, 64, 3), np.float64)),
    (
      {'image': PICTURE, 'map': PICTURE, 'speed': 3},
      gymnasium.spaces.Dict(
        image=BYTES, map=BYTES, speed=gymnasium.spaces.Discrete(4)
      ),
    ),
    (
      (PICTURE, np.zeros(2, np.float32)),
      gymnasium.spaces.Tuple([BYTES, BOX(-1, 1, (2,))]),
    ),
  ],
)
def test_images_in_observations(observ, space):
  """Without render(); dictionaries have a state as well."""
  found = look(observ, space)
  assert list(found) == ['image']
  gray = getattr(space, 'shape', None) == (64, 64)
  wanted = PICTURE[..., [0, 0, 0]] if gray else PICTURE
  assert np.abs(found['image'].astype(int) - wanted).max() <= 1


@pytest.mark.parametrize(
  'observ, space, message',
  [
    (PICTURE / 255, BYTES, 'float64 has values from 0.* declares 0 to 255'),
    (PICTURE - 128.0, BYTES, 'values from -1.* declares 0 to 255'),
    (PICTURE.astype(int) - 1000, BYTES, 'integers has values from -1000'),
    (PICTURE, BOX(0, 1, (64, 64, 3)), 'but its space declares 0 to 1'),
    (PICTURE * 1.0, BOX(0, 1, (64, 64, 3)), 'but its space declares 0 to 1'),
    (PICTURE * np.nan, BOX(0, 1, (64, 64, 3)), 'has values from nan'),
  ],
)
def test_images_that_are_not_of_their_space(observ, space, message):
  """They would become black or white."""
  with pytest.raises(errors.EnvError, match=message):
    look(observ, space)
  make = functools.partial(Own, observ, space)
  assert check.check(make, ['planet']).problems['planet']


@pytest.mark.parametrize('dtype', [int, np.float32])
def test_numbers_that_are_bytes(dtype):
  found = look(PICTURE.astype(dtype), BYTES)['image']
  assert found.dtype == np.uint8 and np.array_equal(found, PICTURE)


def test_dictionaries_of_image_and_state():
  """`observations` chooses; the state has no image."""
  space = gymnasium.spaces.Dict(
    camera=BYTES,
    speed=gymnasium.spaces.Discrete(3),
    position=BOX(-1, 1, (2,), np.float64),
  )
  observ = {'camera': PICTURE, 'speed': 1, 'position': np.array([0.5, -1])}
  assert list(look(observ, space)) == ['image']
  both = look(observ, space, state=True)
  vector = look(observ, space, pixels=False)['state']
  # In the order of the space.
  assert vector.tolist() == [0, 1, 0, 0.5, -1] and vector.dtype == np.float32
  assert both['state'].tolist() == vector.tolist()
  assert np.array_equal(both['image'], PICTURE)


def test_rendered_image_of_an_image():
  """As before, environments that render are rendered."""
  other = np.zeros((64, 64, 3), np.uint8)
  assert not look(PICTURE, BYTES, other)['image'].any()


@pytest.mark.parametrize(
  'observ, space, vector',
  [
    (2, gymnasium.spaces.Discrete(4), [0, 0, 1, 0]),
    (
      np.array([1, 0], np.int8),
      gymnasium.spaces.MultiBinary(2),
      [1, 0],
    ),
    ('go', gymnasium.spaces.Text(9), None),
    (
      {'direction': 0, 'mission': 'go'},
      gymnasium.spaces.Dict(
        direction=gymnasium.spaces.Discrete(4),
        mission=gymnasium.spaces.Text(9),
      ),
      [1, 0, 0, 0],
    ),
  ],
)
def test_any_observations_beside_rendered_images(observ, space, vector):
  assert list(look(observ, space, PICTURE)) == ['image']
  if vector is None:
    with pytest.raises(errors.UsageError, match='does not become a vector'):
      look(observ, space, pixels=False)
    with pytest.raises(errors.UsageError, match='there is no state'):
      look(observ, space, PICTURE, state=True)
  else:
    assert look(observ, space, pixels=False)['state'].tolist() == vector


def test_nothing_to_see():
  with pytest.raises(errors.UsageError, match='does not render any, .*vector'):
    look(np.zeros(1), BOX(-1, 1, (1,)))


@pytest.mark.parametrize('image', [None, PICTURE])
def test_environments_that_cannot_be_stepped_after_their_end(image):
  """Episodes are filled up with the last observation and reward 0."""
  inner = Own(PICTURE, BYTES, image)
  env = gym_pixels.make(inner, 2, 100, min_length=6)
  for _ in range(2):
    observ = env.reset()
    rewards, dones = [], []
    while not dones or not dones[-1]:
      observ, reward, done, _ = env.step(np.zeros(1, np.float32))
      assert np.array_equal(observ['image'], PICTURE)
      assert reward.dtype == np.float32
      rewards.append(float(reward))
      dones.append(done)
    assert inner.rendered == (0 if image is None else 4)
    assert rewards == [2, 2, 1, 0, 0, 0] and dones == [False] * 5 + [True]


def test_environments_that_go_on():
  """They say so, as the driving simulator does."""

  class GoesOn(Own):
    steps_after_end = True

    def step(self, action):
      self._left -= 1
      return self._observ, 1.0, self._left <= 0, False, {}

    def render(self):
      return PICTURE

  env = gym_pixels.make(GoesOn(PICTURE, BYTES, PICTURE), 1, 100, min_length=7)
  env.reset()
  steps = [env.step(np.zeros(1, np.float32))[1:3] for _ in range(7)]
  assert steps[-1] == (1, True) and steps[5] == (1, False)


def test_failed_steps_stay_failed():
  class Fails(Own):
    def step(self, action):
      *others, info = super().step(action)
      return *others, {'step_error': 'broken'} if not self._left else info

  env = gym_pixels.make(Fails(PICTURE, BYTES), 1, 100, min_length=7)
  env.reset()
  infos = [env.step(np.zeros(1, np.float32))[3] for _ in range(7)]
  assert infos[-1].get('step_error') and not infos[3].get('step_error')
