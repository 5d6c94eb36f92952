"""Create environments of the pipeline from plain data, and describe them.

Does not import TensorFlow, because environments run in separate processes.
"""

import functools
from typing import Any

import gymnasium

from agents.envs import (
  adapters,
  contract,
  forwarding,
  guard,
  probe,
  registry,
  spaces,
  wrappers,
)
from agents.pipeline import toolbox
from agents.run import errors, schema

_KEYS = ('name', 'constructor', 'kwargs', 'from_module', 'wrappers', 'config')


def make(
  tree: dict, render: bool = False, system: str | None = None, **kwargs: Any
) -> Any:
  """Create an environment whose episodes depend only on its seed.

  Args:
    tree: Dict of `name`, an id of gymnasium or gym or `module:function`, or
      `constructor`, the dotted name of a class or function. Optional keys are
      `kwargs` for it, `from_module`, the name of a module that registers ids,
      and `wrappers`, a list of dicts of `name` (dotted), `args` and `enabled`,
      innermost first. The result of `inspect` may be stored under `config`.
    render: Whether images will be rendered.
    system: System whose contract the environment is checked for, before its
      wrappers; None for none.
    **kwargs: See `contract.check_spaces`.

  Raises:
    UsageError: If the tree has unknown keys or names that do not exist, or
      the environment contradicts the contract.
    EnvError: If the environment or a wrapper fails in its constructor.
  """
  for key in tree:
    if key not in _KEYS:
      raise errors.UsageError(
        f'The environment {tree.get("name")!r} has the unknown key {key!r}. '
        f'{errors.suggest(key, _KEYS)}'
      )
  for key in ('name', 'constructor', 'from_module'):
    called = f'Key {key!r} of an environment'
    schema.convert(str | None, tree.get(key), called)
  called = "Key 'kwargs' of an environment"
  arguments = schema.convert(dict | None, tree.get('kwargs'), called) or {}
  if tree.get('from_module'):
    toolbox.get_module(tree['from_module'])
  if tree.get('constructor'):
    node = {'name': tree['constructor'], 'args': arguments}
    constructor = toolbox.get_part(node, 'the environment')
    with guard.explained(tree['constructor'], 'in its constructor'):
      env = adapters.adapt(constructor())
  elif tree.get('name'):
    mode = 'rgb_array' if render else None
    env = adapters.create(tree['name'], mode, **arguments)
  else:
    raise errors.UsageError(
      f'The environment {dict(tree)} has neither a name nor a constructor; '
      'set name to the id of an environment.'
    )
  name = tree.get('name') or tree['constructor']
  if system:
    contract.check_spaces(env, name, system, **kwargs)
  if tree.get('wrappers'):
    # Wrappers are to get values that they can convert.
    env = wrappers.Guard(env, name)
  env = forwarding.with_own_randomness(env)
  for wrapper in schema.convert(
    list[dict], tree.get('wrappers', []), "Key 'wrappers' of an environment"
  ):
    if wrapper.get('enabled', True):
      node = {k: x for k, x in wrapper.items() if k != 'enabled'}
      with guard.explained(name, f'in its wrapper {node.get("name")}'):
        env = _wrap(env, node, render)
  return env


def _wrap(env, node, render):
  """Apply a wrapper of gymnasium, or one with the project's interface."""
  part = toolbox.get_part(node, 'a wrapper')
  kind = toolbox.get_class(node['name'])
  if isinstance(kind, type) and issubclass(kind, gymnasium.Wrapper):
    return adapters.wrap(part, env, 'rgb_array' if render else None)
  wrapped = part(env)
  if not adapters.is_environment(wrapped):
    raise TypeError(f'it returns {wrapped!r:.80}, which is not an environment')
  return wrapped


def needs_process(tree: dict, render: bool) -> bool:
  """Return whether an environment needs a process without TensorFlow."""
  # What a module of the user creates is not known here.
  name = str(tree.get('name') or '')
  unknown = tree.get('from_module') or tree.get('constructor') or ':' in name
  return render and bool(unknown or registry.renders_with_opengl(name))


def inspect(tree: dict, system: str | None = None, **kwargs: Any) -> dict:
  """Describe an environment, which is created in a separate process.

  Args:
    tree: See `make`, also for the other arguments.
    system: System to check for.
    **kwargs: Arguments of the check.

  Returns:
    Result of `probe.describe`.

  Raises:
    UsageError: See `make`.
  """
  create = functools.partial(make, tree, system=system, **kwargs)
  report = probe.inspect(create, probe.describe)
  del report['renderer'], report['messages']
  return report


def try_wrappers(tree: dict) -> None:
  """Take a step in a separate process if an environment has others' wrappers.

  Raises:
    UsageError: See `make`.
    EnvError: If that fails.
  """
  if toolbox.list_foreign({'wrappers': tree.get('wrappers')}):
    probe.inspect(functools.partial(make, tree), _try_step)


def _try_step(env):
  guarded = wrappers.Guard(env, guard.find_name(env))
  guarded.reset()
  guarded.step(spaces.sample(env.action_space))
  return {}
