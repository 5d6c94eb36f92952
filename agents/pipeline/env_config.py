"""Environments of the pipeline from plain descriptions, and the other way.

Free of TensorFlow, as environments are built in processes of their own.
"""

import functools
import json

from agents.envs import adapters
from agents.envs import opengl
from agents.envs import spaces
from agents.pipeline import toolbox
from agents.run import errors
from agents.run import references

_KEYS = ('name', 'constructor', 'kwargs', 'from_module', 'wrappers', 'config')
_WRAPPER_KEYS = ('name', 'args', 'enabled')


def make(tree, render=False, trust=references.EVERYTHING, **kwargs):
  """Build an environment.

  Args:
    tree: Dict of `name`, an id of gymnasium or gym, or instead `constructor`,
      the dotted name of a class or function. Optional are `kwargs` for it,
      `from_module`, the name of a module that registers ids, and `wrappers`,
      a list of dicts of `name` (dotted), `args` and `enabled`, the innermost
      first. What `inspect` returns may be kept under `config`.
    render: Whether images will be asked for.
    trust: `references.Trust` in what the tree names.
    **kwargs: Further arguments of the environment.

  Raises:
    UsageError: If the tree has unknown keys, or what it names does not exist.
  """
  _check_keys(tree, _KEYS, 'environment')
  kwargs = {**tree.get('kwargs', {}), **kwargs}
  if tree.get('from_module'):
    toolbox.get_module(tree['from_module'], trust)
  if tree.get('constructor'):
    env = toolbox.get_class(tree['constructor'], trust)(**kwargs)
  elif tree.get('name'):
    references.check_env_id(tree['name'], trust)
    if render and adapters.renders_with_opengl(tree['name']):
      opengl.select_backend()
    mode = 'rgb_array' if render else None
    env = adapters.make(tree['name'], mode, **kwargs)
  else:
    raise errors.UsageError(
      f'The environment {dict(tree)} has neither a name nor a constructor; '
      'give it the id of an environment as name.'
    )
  for wrapper in tree.get('wrappers', ()):
    _check_keys(wrapper, _WRAPPER_KEYS, 'wrapper')
    if wrapper.get('enabled', True):
      constructor = toolbox.get_class(wrapper['name'], trust)
      env = constructor(env, **wrapper.get('args', {}))
  return env


def needs_process(tree, render):
  """Whether an environment must not be in the process of TensorFlow."""
  name = tree.get('name')
  return bool(render and name and adapters.renders_with_opengl(name))


def inspect(tree):
  """Describe an environment, which is built in a process of its own.

  Args:
    tree: See `make`.

  Returns:
    Dict of plain data: `env_type`, `observation_space` (dict from path to
    description), `action_space` (dict from name of agent to description, the
    only name being `agent` unless the space is a dictionary) and
    `max_episode_steps` (None if there is no limit). Descriptions are those of
    `describe_space`.

  Raises:
    UsageError: See `make`.
  """
  plain = {k: v for k, v in tree.items() if k != 'config'}
  return json.loads(_inspect(json.dumps(plain, sort_keys=True)))


def describe(env):
  """See `inspect`, for an environment that exists."""
  observation, action = (
    spaces.convert(x) for x in (env.observation_space, env.action_space)
  )
  spec = getattr(env, 'spec', None)
  return {
    'env_type': type(getattr(env, 'unwrapped', env)).__name__,
    'observation_space': describe_spaces(observation),
    'action_space': describe_spaces(action),
    'max_episode_steps': getattr(spec, 'max_episode_steps', None),
  }


def describe_spaces(space):
  """Dict from path to description of the parts of a space.

  Args:
    space: Space of gymnasium; the path is `agent` if it is no dictionary.
  """
  if hasattr(space, 'spaces'):
    parts = {k: describe_spaces(v) for k, v in dict(space.spaces).items()}
    return {
      key if path == 'agent' else f'{key}/{path}': part
      for key, below in parts.items()
      for path, part in below.items()
    }
  return {'agent': describe_space(space)}


def describe_space(space):
  """Plain data that tell a space.

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


@functools.cache
def _inspect(tree):
  from agents.tools.wrappers import Async

  probe = Async(functools.partial(_Probe, json.loads(tree)), 'process')
  try:
    return probe.description
  finally:
    probe.close()


class _Probe:
  """Stands in for an environment in a process, and tells what it looks like."""

  def __init__(self, tree):
    env = make(tree)
    self.description = json.dumps(describe(env))
    getattr(env, 'close', lambda: None)()


def _check_keys(tree, known, what):
  for key in tree:
    if key not in known:
      raise errors.UsageError(
        f'The {what} {tree.get("name")!r} has the unknown key {key!r}. '
        f'{errors.suggest(key, known)}'
      )
