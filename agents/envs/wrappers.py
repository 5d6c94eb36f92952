"""Wrappers of environments that all systems share.

All of them accept and provide `reset() -> observation` and `step(action) ->
(observation, reward, done, info)`, and forward other attributes to the wrapped
environment. This module does not import TensorFlow, because wrapped
environments run in separate processes. The wrappers of the originals are in
`agents.tools.wrappers` and `planet.control.wrappers`.

Stored configurations may name classes with `references.nameable`; they neither
start processes nor write files.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import guard, images, spaces
from agents.envs.forwarding import Forwarding
from agents.envs.forwarding import OwnRandomness as OwnRandomness
from agents.run import errors, references


@references.nameable
class Wrapper(Forwarding):
  """Base class that forwards everything to the wrapped environment.

  Args:
    env: Environment with `reset`, `step`, and both spaces. Those of gymnasium
      and gym are adapted.
  """

  def __init__(self, env: Any):
    super().__init__(adapted(env))


def adapted(env: Any) -> Any:
  """Return an environment; those of gymnasium and gym are adapted."""
  modules: list[Any] = [sys.modules.get(x) for x in ('gymnasium', 'gym')]
  if not isinstance(env, tuple(x.Env for x in modules if hasattr(x, 'Env'))):
    return env
  from agents.envs import adapters

  return adapters.adapt(env)


@references.nameable
class OneHotAction(Wrapper):
  """Select a discrete action by the largest entry of a vector.

  This lets agents with continuous actions use such environments; uniform random
  vectors select actions uniformly.

  Args:
    env: Environment with a discrete action space.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._choice = spaces.Choice(env.action_space)
    self.action_space = self._choice.space

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    chosen = int(self._choice.choose(action))
    return self._env.step(chosen, *args, **kwargs)


@references.nameable
class ChangeObservation(Wrapper):
  """Base of wrappers that apply `_change` to each observation."""

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    observ, reward, done, info = self._env.step(action, *args, **kwargs)
    return self._change(observ), reward, done, info

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._change(self._env.reset(*args, **kwargs))

  def _change(self, observ):
    raise NotImplementedError


@references.nameable
class VectorObservations(ChangeObservation):
  """Turn the entries of a dictionary, of any shape, into float32 vectors."""

  def __init__(self, env: Any):
    super().__init__(env)
    parts = env.observation_space.spaces.items()
    self.observation_space = spaces.dictionary(
      {k: spaces.box(x.low.ravel(), x.high.ravel()) for k, x in parts}
    )

  def _change(self, observ):
    with np.errstate(over='ignore'):  # `ConvertTo32Bit` raises
      return {k: np.float32(v).reshape(-1) for k, v in observ.items()}


@references.nameable
class Guard(Wrapper):
  """Raise `EnvError` for mistakes of an environment.

  Mistakes are exceptions, including those that would end the program;
  observations that lack a part of the space, are not numbers, or have another
  shape than the space or none of its choices; rewards and ends of episodes that
  are not numbers; an info that is not a dictionary; and rendered values that
  are not images. Arrays of one number, which some environments return as
  rewards and ends, become numbers and bools.

  Args:
    env: Environment.
    name: Name that the user gave.
  """

  def __init__(self, env: Any, name: Any):
    super().__init__(env)
    self._name = name
    self._steps = 0
    space = env.observation_space
    parts = getattr(space, 'spaces', None)
    self._is_dict = isinstance(parts, Mapping)
    self._parts = [
      (path, part, part.shape if hasattr(part, 'low') else None)
      for path, part in images.parts(space)
      if getattr(part, 'shape', None) is not None
    ]

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    self._steps = 0
    with guard.explained(self._name, 'in reset'):
      observ = self._env.reset(*args, **kwargs)
    self._check_observation(observ)
    return observ

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    self._steps += 1
    # Faster than `explained`: steps are many.
    try:
      observ, reward, done, info = self._env.step(action, *args, **kwargs)
    except guard.MISTAKES as error:
      raise guard.translate(error, self._name, self._when) from None
    self._check_observation(observ)
    if type(reward) not in (float, np.float64, np.float32):
      reward = guard.check_number(reward, 'reward', self._name, self._when)
    if type(done) is not bool:
      done = bool(guard.check_number(done, 'the end', self._name, self._when))
    if not isinstance(info, dict):
      raise errors.EnvError(
        f'Environment {self._name} returned info {info!r:.80} {self._when}; '
        'return a dictionary.'
      )
    return observ, reward, done, info

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return the rendered result, which must be an image.

    Gray images without channels get one.
    """
    with guard.explained(self._name, 'in render'):
      image = self._env.render(mode)
    if mode == 'rgb_array':
      image = guard.check_image(image, self._name)
      image = image[..., None] if image.ndim == 2 else image
    return image

  @property
  def _when(self):
    return f'in step {self._steps}' if self._steps else 'in reset'

  def _check_observation(self, observ):
    if self._is_dict and not isinstance(observ, dict):
      raise errors.EnvError(
        f'Environment {self._name} returned the observation {observ!r:.80} '
        f'{self._when}, but its observation_space is a dictionary; '
        'return one with the same keys.'
      )
    for path, space, shape in self._parts:
      try:
        value = images.pick(observ, path)
      except (LookupError, TypeError):
        raise errors.EnvError(
          f'Environment {self._name} returned an observation without '
          f'{images.name_of(path)} {self._when}; return all parts of its '
          'observation_space in every step.'
        ) from None
      known = type(value) is np.ndarray and value.dtype.kind in 'fiu'
      # For other spaces than boxes, the value must be one of the choices.
      if not known or value.shape != shape:
        part = images.name_of(path)
        guard.check_observation(value, space, self._name, self._when, part)
