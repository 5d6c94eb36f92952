"""Environments of gymnasium and PyBullet with image observations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import adapters, contract, guard, images, spaces
from agents.envs.wrappers import Guard, OneHotAction, VectorObservations
from agents.run import errors
from planet.control import wrappers
from planet.envs import interface


def make(
  env: Any,
  action_repeat: int,
  max_length: int,
  min_length: int = 0,
  image_size: int = 64,
  observation_is_image: bool = False,
  pixels: bool = True,
  settings: Mapping[str, Any] | None = None,
  state: bool = False,
  own_actions: bool = False,
) -> Any:
  """Create a gymnasium or PyBullet environment.

  Episodes that end before `min_length` are filled with their last observation
  and reward 0, because many environments cannot be stepped then. Environments
  with `steps_after_end = True` are stepped on, as all are in the original.

  Args:
    env: Argument of `adapters.create`, such as an id.
    action_repeat: Number of steps with the same action.
    max_length: Maximum number of actions per episode.
    min_length: Minimum number of actions per episode, as training requires.
    image_size: Height and width of the images.
    observation_is_image: Whether the observation is the image; otherwise,
      render the environment, unless `contract.find_picture` finds an image.
    pixels: Whether to add images to the observations.
    settings: Keyword arguments of the environment, if `env` is an id.
    state: Whether images come with the state.
    own_actions: Whether actions are those of the environment, instead of
      vectors in [-1, 1].

  Returns:
    Environment with dict observations: with pixels, `image` uint8, and the
    `state` if required; without pixels, `state` is a float32 vector. Its
    attribute `interface` tells what `env` declares.

  Raises:
    UsageError: If the id is unknown, a dependency is missing, or the
      environment is not what `agents.envs.contract` requires.
    EnvError: If the constructor fails.
  """
  name = adapters.name_of(env)
  settings, blind = settings or {}, ''
  if pixels and not observation_is_image:
    env, blind = adapters.create_rendering(env, **settings)
  else:
    env = adapters.create(env, **settings)
  env = Guard(env, name)
  contract.check_spaces(env, name, 'planet', vector=not pixels, blind=blind)
  picture = None
  if observation_is_image:
    picture = images.find(env.observation_space)
  elif pixels:
    picture = contract.find_picture(env)
  scaled = not guard.find_declared(env, 'normalized_actions', bool, False)
  own = env.observation_space, env.action_space, picture, scaled
  if spaces.is_discrete(env.action_space) and not own_actions:
    # As the author of PlaNet advises: choose the largest planned value.
    env = OneHotAction(env)
  env = wrappers.ActionRepeat(env, action_repeat)
  if scaled and not own_actions:
    env = wrappers.NormalizeActions(env)
  env = wrappers.SplitObservations(env, picture)
  if pixels:
    size, channels = (image_size, image_size), images.find_channels(env)
    env = wrappers.PixelObservations(env, size, np.uint8, 'image', channels)
  else:
    env = VectorObservations(env)
  env = wrappers.ConvertTo32Bit(env)
  if state and 'state' not in env.observation_space.spaces:
    raise errors.UsageError(
      f'The observation of {name} is an image or does not become a vector, so '
      'there is no state; set observations: image and state_diagnostics: '
      'False.'
    )
  if pixels and not state:
    env = wrappers.SelectObservations(env, ['image'])
  if not guard.find_declared(env, 'steps_after_end', bool, False):
    env = wrappers.HoldEnd(env)
  env = wrappers.MinimumDuration(env, min_length)
  env = wrappers.MaximumDuration(env, max_length)
  env.interface = interface.Interface(*own)
  return env
