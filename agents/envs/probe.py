"""Build an environment once to learn what it looks like."""

import contextlib
import functools
import logging
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import check, hosts, opengl, spaces
from agents.run import errors


def measure(env: Any, with_info: bool = False) -> dict[str, Any]:
  """Make a step in an environment to learn its shapes, and that it works.

  Args:
    env: Environment with dictionaries as observations.
    with_info: Whether to tell the shapes of the info of the step, too.

  Returns:
    Dict of `shapes`, from the names of observations, `action`, `reward` and,
    if asked for, `info_<name>` to shapes.

  Raises:
    EnvError: If observation or reward are not what the spaces say.
  """
  observ, info = check.try_step(env)
  shapes = {key: np.shape(value) for key, value in observ.items()}
  shapes.update(action=env.action_space.shape, reward=())
  if with_info:
    shapes.update({f'info_{k}': np.shape(v) for k, v in info.items()})
  return {'shapes': shapes}


def describe(env: Any) -> dict[str, Any]:
  """Describe an environment in plain data.

  Returns:
    Dict of `env_type`, `observation_space` (dict from path to description),
    `action_space` (dict from name of agent to description, the only name being
    `agent` unless the space is a dictionary) and `max_episode_steps` (None if
    there is no limit). Descriptions are those of `describe_space`.

  Raises:
    UsageError: If a space is of a kind that is not supported.
  """
  spec = getattr(env, 'spec', None)
  return {
    'env_type': type(getattr(env, 'unwrapped', env)).__name__,
    'observation_space': _describe_spaces(env.observation_space),
    'action_space': _describe_spaces(env.action_space),
    'max_episode_steps': getattr(spec, 'max_episode_steps', None),
  }


def describe_space(space: Any) -> dict[str, Any]:
  """Describe a space in plain data.

  Args:
    space: Box or discrete space of gymnasium.

  Returns:
    Dict of `typ`, `Box` or `Discrete`; `dim`, the shape or the number of
    choices; and `lim`, lists of lowest and highest values, None if discrete.

  Raises:
    UsageError: If it is any other space.
  """
  kind = type(space).__name__
  if kind == 'Box':
    lim = [space.low.tolist(), space.high.tolist()]
    return {'typ': kind, 'dim': list(space.shape), 'lim': lim}
  if kind == 'Discrete':
    return {'typ': kind, 'dim': int(space.n), 'lim': None}
  raise errors.UsageError(
    f'Spaces of the kind {kind} ({space}) are not supported; use an '
    'environment with boxes or discrete spaces, or dictionaries of them.'
  )


def inspect(
  constructor: Callable[[], Any],
  look: Callable[[Any], dict[str, Any]] = measure,
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
  host = hosts.EnvHost(functools.partial(_Probe, constructor, look), 'process')
  try:
    report = host.access(None, 'report')()
  finally:
    host.close()
  os.environ.update(report.pop('environ'))
  return report


class _Probe:
  """Has looked at an environment, in the process that it belongs to."""

  def __init__(self, constructor, look):
    messages = []
    handler = logging.Handler()
    setattr(handler, 'emit', lambda x: messages.append(x.getMessage()))
    logging.getLogger('agents').addHandler(handler)
    logging.getLogger('agents').setLevel(logging.INFO)
    env = constructor()
    try:
      found = look(env)
    finally:
      with contextlib.suppress(AttributeError):
        env.close()
    self.report = {
      **found,
      'environ': {
        key: os.environ[key] for key in opengl.VARIABLES if key in os.environ
      },
      'renderer': opengl.selected_renderer(),
      'messages': messages,
    }


def _describe_spaces(space):
  """Dict from path to description; the path is `agent` if there is one."""
  space = spaces.convert(space)
  if not hasattr(space, 'spaces'):
    return {'agent': describe_space(space)}
  parts = {k: _describe_spaces(v) for k, v in dict(space.spaces).items()}
  return {
    key if path == 'agent' else f'{key}/{path}': part
    for key, below in parts.items()
    for path, part in below.items()
  }
