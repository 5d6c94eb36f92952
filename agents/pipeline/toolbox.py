"""Names of modules, classes and functions in parameter trees.

A tree comes from the user's own module, which may contain any name, or from a
stored session, which may contain `references.nameable` names of this project
and names that `--trust` covers. `check_names` checks the tree of a session at
load time.
"""

import functools
import importlib
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agents.run import errors, references

# Keys of files whose formats can hold programs.
_PICKLES = ('demo_file', 'load_path')
_OWN = references.Trust(references.PROJECT)


def get_module(name: str) -> types.ModuleType:
  """Import a module by its dotted name.

  Raises:
    UsageError: If the module does not exist or ends the program. Errors raised
      inside it are passed on.
  """
  if not name or name.startswith('.'):
    raise errors.UsageError(
      f'{name!r} is not the name of a module; give a dotted name without path, '
      'such as agents.pipeline.params.ddpg_pendulum.'
    )
  try:
    return importlib.import_module(name)
  except SystemExit as error:
    raise errors.UsageError(
      f'Importing the module {name!r} ends the program with {error!r}; call '
      'sys.exit only under if __name__ == "__main__".'
    ) from None
  except ModuleNotFoundError as error:
    missing = error.name or ''
    if missing.partition('.')[0] == 'digideep':
      raise errors.UsageError(
        f'The module {name!r} imports {missing!r}, which is not installed; '
        'write "from agents.pipeline.digideep import MakeEnvironment" in place '
        'of that line. docs/coming-from.md tells what takes the place of what.'
      ) from None
    if name != missing and not name.startswith(missing + '.'):
      raise
    raise errors.UsageError(
      f'There is no module {missing!r}, which {name!r} needs; give the dotted '
      'name of a module, such as agents.pipeline.params.ddpg_pendulum.'
    ) from None


def get_class(name: str) -> Any:
  """Return the class or function `package.module.Name` or `module:Name`.

  Raises:
    UsageError: If the module or the name in it does not exist.
  """
  module_name, attribute = _split(name)
  module = get_module(module_name)
  if not hasattr(module, attribute):
    known = [x for x in vars(module) if not x.startswith('_')]
    raise errors.UsageError(
      f'Module {module_name} has no {attribute!r}. '
      f'{errors.suggest(attribute, known)}'
    )
  return getattr(module, attribute)


def get_part(node: Mapping[str, Any]) -> Callable[..., Any]:
  """Return the class or function of a node, with its arguments bound.

  Args:
    node: Dict of `name` and optional `args`, in which `{reference: name}`
      stands for a class or function.

  Raises:
    UsageError: If a name does not exist.
  """
  return functools.partial(
    get_class(node['name']), **_resolve(node.get('args', {}))
  )


def check_names(tree: Mapping[str, Any], trust: references.Trust) -> None:
  """Refuse a tree with names that its session may not use.

  Raises:
    NotTrusted: For the first such name, which is not imported.
    UsageError: If a name does not exist.
  """
  for key, name in list_names(tree):
    if key in _PICKLES:
      references.check_pickle(name, trust)
    elif key == 'from_module':
      references.check_place(name, name, trust)
    elif key == 'name' and ':' in name and not _OWN.covers(name):
      references.check_env_id(name, trust)
    else:
      references.resolve(name, trust)


def list_foreign(tree: Mapping[str, Any]) -> list[str]:
  """Return the names in a tree that need `--trust` when it is loaded."""
  found = {
    name if key in (*_PICKLES, 'from_module') else _split(name)[0]
    for key, name in list_names(tree)
  }
  return sorted(x for x in found if not _OWN.covers(x))


def list_packages(tree: Mapping[str, Any]) -> list[str]:
  """Return the packages of this project that a tree uses."""
  found = {name.partition('.')[0] for _, name in list_names(tree)}
  return sorted({'agents'} | found & set(references.PROJECT))


def list_names(node: Any) -> Iterator[tuple[str, str]]:
  """Yield keys and values of all names of classes, modules and files."""
  if isinstance(node, (list, tuple)):
    node = dict(enumerate(node))
  if not isinstance(node, dict):
    return
  for key, value in node.items():
    if not isinstance(value, str):
      yield from list_names(value)
    elif key in (*_PICKLES, 'from_module') and value:
      yield key, value
    elif key in ('name', 'constructor') and re.search('[.:]', value):
      yield key, value
    elif re.fullmatch(r'[a-zA-Z_][\w.]*:[a-zA-Z_][\w.]*', value):
      yield key, value


def _split(name):
  """Return the module and the rest of a name."""
  module, separator, attribute = name.rpartition(':' if ':' in name else '.')
  if not separator:
    raise errors.UsageError(
      f'The class {name!r} has no module; write it like '
      'agents.pipeline.runner.Runner.'
    )
  return module, attribute


def _resolve(value):
  """Replace `{reference: name}` in plain data with the named object."""
  if isinstance(value, list):
    return [_resolve(x) for x in value]
  if not isinstance(value, dict):
    return value
  if set(value) == {'reference'}:
    return get_class(value['reference'])
  return {key: _resolve(x) for key, x in value.items()}
