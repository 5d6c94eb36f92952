"""Build an environment once to learn what it looks like."""

import contextlib
import functools
import logging.handlers
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import check, hosts, opengl, spaces
from agents.run import errors

# More messages than an environment can have.
_MESSAGES = 10**6


def measure(env: Any) -> dict[str, tuple[int, ...]]:
  """Make a step in an environment to learn its shapes, and that it works.

  Args:
    env: Environment with dictionaries as observations.

  Returns:
    Dict from the names of observations, `action` and `reward` to shapes.

  Raises:
    EnvError: If observation or reward are not what the spaces say.
  """
  observ, _ = check.try_step(env)
  shapes = {key: np.shape(value) for key, value in observ.items()}
  return {**shapes, 'action': env.action_space.shape, 'reward': ()}


def describe(env: Any) -> dict[str, Any]:
  """Describe an environment in plain data.

  Returns:
    Dict of `env_type`, `observation_space` (dict from path to description),
    `action_space` (dict from name of agent to description, the only name being
    `agent` unless the space is a dictionary) and `max_episode_steps` (None if
    there is no limit). A description is a dict of `typ`, `Box` or `Discrete`;
    `dim`, the shape or the number of choices; and `lim`, lists of lowest and
    highest values, None if discrete.

  Raises:
    UsageError: If a space is of a kind that is not supported.
  """
  spec = getattr(env, 'spec', None)
  return {
    'env_type': type(getattr(env, 'unwrapped', env)).__name__,
    'observation_space': _describe(spaces.convert(env.observation_space)),
    'action_space': _describe(spaces.convert(env.action_space)),
    'max_episode_steps': getattr(spec, 'max_episode_steps', None),
  }


def _describe(space, path=''):
  """Dict from path to description; the path is `agent` if there is one."""
  kind = type(space).__name__
  if kind == 'Dict':
    parts: dict[str, Any] = {}
    for key, below in space.spaces.items():
      parts.update(_describe(below, f'{path}/{key}' if path else key))
    return parts
  found: dict[str, Any]
  if kind == 'Box':
    lim = [space.low.tolist(), space.high.tolist()]
    found = {'typ': kind, 'dim': list(space.shape), 'lim': lim}
  elif kind == 'Discrete':
    found = {'typ': kind, 'dim': int(space.n), 'lim': None}
  else:
    raise errors.UsageError(
      f'Spaces of the kind {kind} ({space}) are not supported; use an '
      'environment with boxes or discrete spaces, or dictionaries of them.'
    )
  return {path or 'agent': found}


def inspect(
  constructor: Callable[[], Any], look: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
  """Build an environment in a process of its own, and look at it.

  What was found out about OpenGL is kept for the processes to come.

  Args:
    constructor: Function without arguments that returns an environment.
    look: Function from the environment to a dictionary of plain data.

  Returns:
    What `look` returns, with `renderer`, the name of the OpenGL renderer or
    None, and `messages`, a list of lines for the user.

  Raises:
    UsageError: If the environment misses something.
    WorkerError: If it fails, with its traceback.
  """
  host = hosts.EnvHost(functools.partial(_probe, constructor, look), 'process')
  try:
    report = host.access(None, 'report')()
  finally:
    host.close()
  os.environ.update(report.pop('environ'))
  return report


def _probe(constructor, look):
  """Object with a `report`, made in the process of the environment."""
  handler = logging.handlers.BufferingHandler(_MESSAGES)
  logging.getLogger('agents').addHandler(handler)
  logging.getLogger('agents').setLevel(logging.INFO)
  env = constructor()
  try:
    found = look(env)
  finally:
    with contextlib.suppress(AttributeError):
      env.close()
  report = {
    **found,
    'environ': {
      key: os.environ[key] for key in opengl.VARIABLES if key in os.environ
    },
    'renderer': opengl.selected_renderer(),
    'messages': [x.getMessage() for x in handler.buffer],
  }
  return types.SimpleNamespace(report=report)
