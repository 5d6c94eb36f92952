"""Names of modules, classes and functions in parameter trees.

A tree comes from the user's own module, which may contain any name, or from a
stored session, which may contain `references.nameable` names of this project
and names that `--trust` covers. `check_names` checks the tree of a session at
load time.
"""

import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.run import errors, references

_PART_KEYS = ('name', 'args', 'policy', 'sampler')
# Keys of files whose formats can hold programs.
_PICKLES = ('demo_file', 'load_path')
_OWN = references.Trust(references.PROJECT)
# Result of a part that is not complete yet.
_OPEN = object()


def get_module(name: str) -> types.ModuleType:
  """Import a module by its dotted name.

  Raises:
    UsageError: If the module does not exist or ends the program. Errors raised
      inside it are passed on.
  """
  if not isinstance(name, str) or not name or name.startswith('.'):
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
        'of that line. docs/coming-from.md lists all replacements.'
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


def get_part(node: Any, called: str = 'a part') -> Callable[..., Any]:
  """Return the class or function of a node, with its arguments bound.

  Args:
    node: Dict of `name` and optional `args`, in which `{reference: name}`
      stands for a class or function.
    called: What it is in messages, such as `memory 'train'`.

  Raises:
    UsageError: If the node has another form, or a name does not exist. So does
      the result if the constructor does not have these arguments.
  """
  if not isinstance(node, Mapping):
    raise errors.UsageError(
      f'The node of {called} is {node!r}; give a mapping of name and args.'
    )
  for key in node:
    if key not in _PART_KEYS:
      raise errors.UsageError(
        f'The node of {called} has the unknown key {key!r}; arguments belong '
        f'in args. {errors.suggest(str(key), _PART_KEYS)}'
      )
  name, args = node.get('name'), node.get('args')
  function = get_class(name) if isinstance(name, str) else None
  if not (callable(function) and isinstance(args, Mapping | None)):
    raise errors.UsageError(
      f'The node of {called} is {dict(node)}; give the name of a class or '
      'function, and as args a mapping of its arguments.'
    )
  return functools.partial(_call, function, called, _resolve(args or {}))


def check_function(value: Any, called: str) -> None:
  """Refuse an argument that does not refer to a function.

  Raises:
    UsageError: If it is something else.
  """
  if not callable(value):
    raise errors.UsageError(
      f'{called} is {value!r}, but must be a function; write {{"reference": '
      '"my_module:my_function"}.'
    )


def to_data(node: Any, place: str = 'params') -> Any:
  """Return a tree as plain data, in which classes are references.

  Args:
    node: Tree of a parameter module; it may hold numbers and arrays of NumPy,
      tuples, functions and classes. Parts that occur twice do so in the result.
    place: Where it is, for messages.

  Raises:
    UsageError: If a value is not data.
  """
  return _to_data(node, place, {})


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


def is_own(part: Any) -> bool:
  """Return whether the class of a part belongs to this project."""
  return _OWN.covers(type(part).__module__)


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


def _call(function, called, args, *more, **named):
  """Call a function or class; say which argument it does not have."""
  try:
    return function(*more, **{**args, **named})
  except TypeError as error:
    kinds = getattr(function, '__mro__', ())
    own = [function, *kinds, *(x.__init__ for x in kinds)]
    names = [f'{getattr(x, "__qualname__", None)}() ' for x in own]
    # Errors within the constructor are passed on.
    if not str(error).startswith(tuple(names)):
      raise
    found = re.search("unexpected keyword argument '(.*?)'", str(error))
    known = {y for x in own for y in _list_arguments(x)} - {'self'}
    advice = f' {errors.suggest(found[1], known)}' if found else ''
    raise errors.UsageError(
      f'Cannot create {called}: {error}.{advice}'
    ) from None


def _list_arguments(function):
  try:
    return list(inspect.signature(function).parameters)
  except ValueError:
    return []


def _to_data(node, place, done):
  if id(node) in done:
    if done[id(node)][1] is _OPEN:
      raise errors.UsageError(
        f'The value of {place} contains itself; give plain data.'
      )
    return done[id(node)][1]
  done[id(node)] = node, _OPEN
  result: Any
  if isinstance(node, Mapping):
    result = {
      references.to_plain(key): _to_data(x, f'{place}.{key}', done)
      for key, x in node.items()
    }
    for key in ('name', 'constructor'):
      named = result.get(key)
      if isinstance(named, dict) and set(named) == {'reference'}:
        result[key] = named['reference']
  elif isinstance(node, (list, tuple)):
    result = [_to_data(x, f'{place}.{i}', done) for i, x in enumerate(node)]
  else:
    result = references.to_plain(node)
    is_text = isinstance(result, str) and not isinstance(node, (str, Path))
    if is_text or (isinstance(result, dict) and result['reference'][0] == '<'):
      raise errors.UsageError(
        f'The value of {place} is {node!r}, which cannot be stored; give plain '
        'data, or a function or class that a module defines.'
      )
  # Keeps the node, so that no other one gets its id.
  done[id(node)] = node, result
  return result


def _split(name):
  """Return the module and the rest of a name."""
  if not isinstance(name, str):
    raise errors.UsageError(f'{name!r} is not the name of a class; give text.')
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
