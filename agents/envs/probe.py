"""Create an environment once to find out its properties."""

import contextlib
import functools
import logging.handlers
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import contract, guard, hosts, images, opengl, spaces, wrappers
from agents.run import errors

# More messages than an environment can have.
_MESSAGES = 10**6


def measure(env: Any) -> dict[str, tuple[int, ...]]:
  """Take a step in an environment to find its shapes and check that it works.

  Args:
    env: Environment with dictionary observations.

  Returns:
    Dict from the names of observations, `action` and `reward` to shapes.

  Raises:
    EnvError: If an observation or reward does not match the spaces.
  """
  observ, _, _ = contract.try_step(env)
  shapes = {key: np.shape(value) for key, value in observ.items()}
  return {**shapes, 'action': env.action_space.shape, 'reward': ()}


def describe(env: Any) -> dict[str, Any]:
  """Describe an environment as plain data.

  Returns:
    Dict of `env_type`, `observation_space` (dict from path to description),
    `action_space` (dict from agent name to description; the only name is
    `agent` unless the space is a dictionary) and `max_episode_steps` (None for
    no limit). A description is a dict of `typ`, `Box` or `Discrete`; `dim`, the
    shape or the number of choices; `lim`, lists of lower and upper bounds, or
    numbers for images, None if discrete; `dtype` if that of a box is not
    float32; and `start`, the first choice, if that is not 0.

  Raises:
    UsageError: If the kind of a space is not supported.
  """
  return {
    'env_type': type(getattr(env, 'unwrapped', env)).__name__,
    'observation_space': spaces.describe(env.observation_space),
    'action_space': spaces.describe(env.action_space),
    'max_episode_steps': contract.find_time_limit(env),
  }


def inspect(
  constructor: Callable[[], Any], look: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
  """Create an environment in a separate process and inspect it.

  Reuses the selected OpenGL backend in later processes. If MuJoCo renders
  without one, when the environment is created, selects it and tries again.

  Args:
    constructor: Function without arguments that returns an environment.
    look: Function from the environment to a dictionary of plain data.

  Returns:
    Result of `look`, with `renderer`, the name of the OpenGL renderer or None,
    and `messages`, a list of lines for the user.

  Raises:
    UsageError: If the environment needs something that is missing.
    WorkerError: If it fails; includes the traceback.
  """
  try:
    report = _report(constructor, look)
  except (errors.EnvError, hosts.WorkerError) as error:
    text = f'{error}\n{getattr(error, "details", "")}'
    if 'mujoco.FatalError' not in text or 'MUJOCO_GL' in os.environ:
      raise
    opengl.select_backend()
    report = _report(constructor, look)
  os.environ.update(report.pop('environ'))
  return report


def inspect_here(
  constructor: Callable[[], Any], look: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
  """Return what `look` returns for an environment created in this process."""
  env = constructor()
  try:
    return look(env)
  finally:
    with contextlib.suppress(AttributeError):
      env.close()


def find_problem(
  constructor: Callable[[], Any],
  look: Callable[[Any], dict[str, Any]] | None = None,
) -> str | None:
  """Return why an environment cannot be shown, None if it can.

  Args:
    constructor: Function that creates it to be shown.
    look: See `inspect`; by default, one that renders an image.
  """
  try:
    inspect(constructor, look or _draw)
  except (errors.UsageError, errors.EnvError) as error:
    return str(error)
  return None


def _draw(env):
  """Render an image, and return nothing about it."""
  env.reset()
  name = guard.find_name(env)
  images.for_people(wrappers.Guard(env, name).render(), name)
  return {}


def _report(constructor, look):
  host = hosts.EnvHost(functools.partial(_probe, constructor, look), 'process')
  try:
    return host.access(None, 'report')()
  finally:
    host.close()


def _probe(constructor, look):
  """Object with a `report`, made in the process of the environment."""
  handler = logging.handlers.BufferingHandler(_MESSAGES)
  logging.getLogger('agents').addHandler(handler)
  logging.getLogger('agents').setLevel(logging.INFO)
  report = {
    **inspect_here(constructor, look),
    'environ': {
      key: os.environ[key] for key in opengl.VARIABLES if key in os.environ
    },
    'renderer': opengl.selected_renderer(),
    'messages': [x.getMessage() for x in handler.buffer],
  }
  return types.SimpleNamespace(report=report)
