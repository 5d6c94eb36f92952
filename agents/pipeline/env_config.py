"""Environments of the pipeline from plain descriptions, and the other way.

Free of TensorFlow, as environments are built in processes of their own.
"""

import functools
from typing import Any

from agents.envs import adapters, probe, wrappers
from agents.pipeline import toolbox
from agents.run import errors

_KEYS = ('name', 'constructor', 'kwargs', 'from_module', 'wrappers', 'config')
_WRAPPER_KEYS = ('name', 'args', 'enabled')


def make(tree: dict, render: bool = False) -> Any:
  """Build an environment, whose episodes depend on its seed only.

  Args:
    tree: Dict of `name`, an id of gymnasium or gym, or instead `constructor`,
      the dotted name of a class or function. Optional are `kwargs` for it,
      `from_module`, the name of a module that registers ids, and `wrappers`,
      a list of dicts of `name` (dotted), `args` and `enabled`, the innermost
      first. What `inspect` returns may be kept under `config`.
    render: Whether images will be asked for.

  Raises:
    UsageError: If the tree has unknown keys, or what it names does not exist.
  """
  _check_keys(tree, _KEYS, 'environment')
  kwargs = tree.get('kwargs', {})
  if tree.get('from_module'):
    toolbox.get_module(tree['from_module'])
  if tree.get('constructor'):
    env = toolbox.get_class(tree['constructor'])(**kwargs)
  elif tree.get('name'):
    mode = 'rgb_array' if render else None
    env = adapters.make(tree['name'], mode, **kwargs)
  else:
    raise errors.UsageError(
      f'The environment {dict(tree)} has neither a name nor a constructor; '
      'give it the id of an environment as name.'
    )
  env = wrappers.with_own_randomness(env)
  for wrapper in tree.get('wrappers', ()):
    _check_keys(wrapper, _WRAPPER_KEYS, 'wrapper')
    if wrapper.get('enabled', True):
      constructor = toolbox.get_class(wrapper['name'])
      env = constructor(env, **wrapper.get('args', {}))
  return env


def needs_process(tree: dict, render: bool) -> bool:
  """Return whether an environment must not be in the process of TensorFlow."""
  # An id that a module registers is not known here.
  name, unknown = tree.get('name'), tree.get('from_module')
  opengl = unknown or (name and adapters.renders_with_opengl(name))
  return bool(render and opengl)


def inspect(tree: dict) -> dict:
  """Describe an environment, which is built in a process of its own.

  Args:
    tree: See `make`.

  Returns:
    What `probe.describe` returns.

  Raises:
    UsageError: See `make`.
  """
  report = probe.inspect(functools.partial(make, tree), probe.describe)
  del report['renderer'], report['messages']
  return report


def _check_keys(tree, known, what):
  for key in tree:
    if key not in known:
      raise errors.UsageError(
        f'The {what} {tree.get("name")!r} has the unknown key {key!r}. '
        f'{errors.suggest(key, known)}'
      )
