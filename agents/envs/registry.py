"""What the ids of environments name, in gymnasium, gym and modules of users.

Ids are looked up in gymnasium first, then in gymnasium-robotics, gym and
PyBullet. Ids whose simulator no longer exists resolve to the maintained
version.
"""

import contextlib
import copy
import functools
import importlib
import logging
import pickle
import sys
import warnings
from typing import Any

import gymnasium

from agents.envs import guard, quiet
from agents.run import errors, references


@functools.cache
def resolve(env_id: str) -> tuple[str, str]:
  """Return the library, `gymnasium` or `gym`, and the current id.

  Raises:
    UsageError: If the id is unknown or its library is not installed.
  """
  module, _, name = env_id.rpartition(':')
  if module:
    return _find_library(env_id, module, name), env_id
  registry = gymnasium.registry
  if env_id not in registry and env_id in ids_of_gym():
    return 'gym', env_id
  if not _versions(env_id) and 'Bullet' not in env_id:
    with contextlib.suppress(ImportError), quiet.quietly():
      import gymnasium_robotics

      gymnasium.register_envs(gymnasium_robotics)
  if env_id in registry and _is_maintained(registry[env_id]):
    return 'gymnasium', env_id
  versions = _versions(env_id)
  if versions:
    newest = versions[max(versions)]
    logging.getLogger(__name__).info(
      '%s no longer exists; using %s.', env_id, newest
    )
    return 'gymnasium', newest
  if env_id in all_ids_of_gym():
    return 'gym', env_id
  raise errors.UsageError(_explain_unknown(env_id))


def find_entry(env_id: str) -> Any:
  """Return the entry of an id in the registry of its library.

  Raises:
    UsageError: See `resolve`.
    LookupError: If the id belongs to a function.
  """
  library, found = resolve(env_id)
  registry = gymnasium.registry if library == 'gymnasium' else all_ids_of_gym()
  return registry[found.rpartition(':')[2]]


def find_function(name: str) -> Any:
  """Return the function or class of a name `module:function`, None for ids.

  Raises:
    UsageError: If it was an object, which has no name.
    EnvError: If its module fails.
  """
  if name.startswith('<'):
    raise errors.UsageError(
      f'The environment was the object {name}, which cannot be restored by '
      'name; pass the object again.'
    )
  module, _, function = name.partition(':')
  if not function.isidentifier():
    return None
  with guard.explained(name, 'in its module'):
    try:
      found = getattr(importlib.import_module(module), function, None)
    except ModuleNotFoundError:
      return None
  # Ids without a version may have the name of their class.
  known = function in gymnasium.registry or function in ids_of_gym()
  return None if known else found


def ids_of_gym() -> dict[str, Any]:
  """Return the entries of what is registered with gym, but not by gym."""
  registration = sys.modules.get('gym.envs.registration')
  found = registration.registry if registration else {}
  return {
    name: spec
    for name, spec in found.items()
    if not str(spec.entry_point).startswith('gym.')
  }


def all_ids_of_gym() -> dict[str, Any]:
  """Return the entries of `ids_of_gym`, with PyBullet's if installed."""
  with contextlib.suppress(ImportError), quiet.quietly():
    import pybullet_envs  # noqa: F401
  return ids_of_gym()


def renders_with_opengl(env_id: str) -> bool:
  """Return whether an environment renders with MuJoCo and thus OpenGL."""
  try:
    library, _ = resolve(env_id)
    name = str(find_entry(env_id).entry_point)
  except (errors.UsageError, LookupError):
    # Environments without an id, such as the minitaur, draw otherwise.
    return False
  return library == 'gymnasium' and ('mujoco' in name or 'robotics' in name)


def pack() -> list[bytes]:
  """Return what this program has registered, for `unpack` in another process.

  Functions of the program may make such ids, which the other process does not
  know. What cannot be pickled is left out.
  """
  import cloudpickle

  packed = []
  for name, spec in [*gymnasium.registry.items(), *ids_of_gym().items()]:
    # Every process has those of gymnasium itself.
    if not str(spec.entry_point).startswith('gymnasium.'):
      with contextlib.suppress(Exception):
        packed.append(cloudpickle.dumps((name, _without_import(spec))))
  return packed


def unpack(packed: list[bytes]) -> None:
  """Register what another process has registered."""
  if not packed:
    return
  # Modules of the user may register the same when they are imported.
  warnings.filterwarnings('ignore', '.*Overriding environment')
  with quiet.quietly():
    for part in packed:
      with contextlib.suppress(Exception):
        name, spec = pickle.loads(part)
        library = importlib.import_module(type(spec).__module__)
        library.registry.setdefault(name, spec)


def _without_import(spec):
  """Return an entry that `pickle.loads` restores without a module of a user."""
  spec, entry = copy.copy(spec), spec.entry_point
  if isinstance(entry, str) and entry.startswith('__main__:'):
    # There, the main program is another one.
    spec.entry_point = getattr(sys.modules['__main__'], entry[9:])
  elif not isinstance(entry, str):
    name = references.name_of(entry)
    module, _, qualname = name.partition(':')
    if qualname.isidentifier() and module != '__main__':
      spec.entry_point = name
  return spec


def _versions(env_id):
  """Return a dict from version to id of what gymnasium maintains of an id."""
  base = env_id.rpartition('-v')[0] or env_id
  versions = {}
  for name, spec in gymnasium.registry.items():
    if name.rpartition('-v')[0] == base and _is_maintained(spec):
      versions[spec.version or 0] = name
  return versions


def _is_maintained(spec):
  entry = spec.entry_point
  name = entry if isinstance(entry, str) else getattr(entry, '__name__', '')
  # gymnasium-robotics also registers environments that need mujoco_py.
  gone = ('mujoco_py', ':MujocoPy', 'gymnasium_robotics.envs.mujoco.')
  return not any(x in name for x in gone)


def _find_library(env_id, module, name):
  """Return the library with which a module registers an id."""
  with guard.explained(env_id, 'in its module'):
    try:
      imported = importlib.import_module(module)
    except ModuleNotFoundError:
      # gymnasium.make raises the error that names the module.
      return 'gymnasium'
  if name in gymnasium.registry or _versions(name):
    return 'gymnasium'
  if name in ids_of_gym():
    return 'gym'
  package = module.partition('.')[0]
  known = [
    x
    for x, value in vars(imported).items()
    if getattr(value, '__module__', '') == module and callable(value)
  ]
  for spec in (*gymnasium.registry.values(), *ids_of_gym().values()):
    entry = spec.entry_point
    home = entry if isinstance(entry, str) else getattr(entry, '__module__', '')
    if home.replace(':', '.').startswith(f'{package}.'):
      known.append(spec.id)
  raise errors.UsageError(
    f'The module {module} registers no environment {name!r}, neither with '
    'gymnasium nor with gym, and has no function or class of this name. '
    + (errors.suggest(name, known) if known else 'Register it there.')
  )


def _explain_unknown(env_id):
  known = [*gymnasium.registry, *all_ids_of_gym()]
  extras = {'Bullet': 'pybullet'}
  extras.update(dict.fromkeys(('Fetch', 'Hand', 'AntMaze'), 'robotics'))
  for word, extra in extras.items():
    if word in env_id and not any(word in x for x in known):
      return (
        f'Environment {env_id!r} needs the extra {extra!r}: '
        f'{errors.how_to_install(extra)}.'
      )
  return f'Environment {env_id!r} is unknown. {errors.suggest(env_id, known)}'
