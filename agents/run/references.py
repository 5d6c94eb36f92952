"""Functions and classes that files refer to, and which of them are allowed.

The log directory of a run may come from anyone and must not execute code. A
name in its files is used only if it is marked for that (`nameable`), or if the
user trusts the module that defines it.
"""

import contextlib
import dataclasses
import dis
import functools
import importlib
import numbers
import operator
import pkgutil
import re
import sys
import types
import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from agents.run import errors

HELP = 'Module of yours that the stored run may import. Can be repeated.'
PROJECT = ('agents', 'planet', 'baselines_her')
_nameable: set[str] = set()
# End of the name of a function: checksums, and the Python that compiled it.
_COMPILED = re.compile(r'(?:-[0-9a-f]{8})+-py(3\.\d+)(?=>)')
_Named = TypeVar('_Named', bound=Callable[..., Any])


class NotTrusted(errors.UsageError):
  """A file contains a name that is not allowed."""


@dataclasses.dataclass(frozen=True)
class Trust:
  """Names that files may use in addition to those this project allows.

  Args:
    names: Tuple of modules, packages, or full names such as `module.Class`.
    everything: Whether to allow all names; use this only for names from the
      user's own modules and commands, not for names from a file.
  """

  names: tuple[str, ...] = ()
  everything: bool = False

  def covers(self, name: str) -> bool:
    """Return whether a name is trusted or inside a trusted name."""
    dotted = name.replace(':', '.')
    inside = (f'{dotted}.'.startswith(f'{x}.') for x in self.names)
    return self.everything or any(inside)

  def and_typed(self, texts: Iterable[Any]) -> 'Trust':
    """Return a copy that also trusts what the user typed.

    Args:
      texts: Values from the command line: environment ids such as
        `my_package:MyEnv-v0`, dotted names, paths, or anything else.
    """
    names = [x for x in texts if isinstance(x, str) and re.search('[.:/]', x)]
    modules = [re.sub(r'^(\w+(\.\w+)*):.*', r'\1', x) for x in names]
    return dataclasses.replace(self, names=(*self.names, *modules))


NOTHING = Trust()
EVERYTHING = Trust(everything=True)


# What functions for users accept as `trust`, see `parse`.
Trusted = str | Iterable[str] | Trust | None


def parse(given: Trusted) -> Trust:
  """Return the trust that a user has given in a command or in Python.

  Args:
    given: One name, such as that of a module; several names, each of which may
      be comma-separated, as the values of `--trust` are; or a `Trust`.

  Raises:
    UsageError: If it is anything else.
  """
  if isinstance(given, Trust):
    return given
  names = [given] if isinstance(given, str) else given or ()
  if not isinstance(names, Iterable) or isinstance(names, bytes):
    names = [names]
  names = list(names)
  for name in names:
    if not isinstance(name, str):
      raise errors.UsageError(
        f'Cannot trust {name!r}; give the name of a module, or a list of names.'
      )
  if not isinstance(given, str):
    names = ','.join(names).split(',')
  return Trust(tuple(x.strip() for x in names if x.strip()))


def nameable(value: _Named) -> _Named:
  """Decorator that lets files name a function or class.

  It must be harmless with any arguments that a file can hold.
  """
  _nameable.add(f'{value.__module__}.{value.__qualname__}')
  return value


def name_of(value: Any, known: tuple[Any, ...] = ()) -> str:
  """Return a name under which to store an object.

  Args:
    value: Object.
    known: Functions that the name being made depends on already.

  Returns:
    `module:qualname` if another process can find the object by it, `module:`
    for a module, otherwise a text in angle brackets, with `()` unless it is a
    function, a class or a `functools.partial`. That of functions and partials
    depends on code and values, including those of globals. Where code counts,
    the version of Python, which compiles it, is in the name.
  """
  if isinstance(value, types.ModuleType) and value.__name__ != '__main__':
    return f'{value.__name__}:'
  kind = value if hasattr(value, '__qualname__') else type(value)
  name = f'{kind.__module__}:{kind.__qualname__}'
  if kind is value and kind.__module__ != '__main__':
    with contextlib.suppress(ImportError, AttributeError, ValueError):
      if pkgutil.resolve_name(name) is value:
        return name
  if any(value is x for x in known):
    return f'<{name}>'
  is_made = kind is not value and not isinstance(value, functools.partial)
  call = '()' if is_made else ''
  python = f'-py3.{sys.version_info.minor}' if _has_code(value) else ''
  return f'<{name}{_digest(value)}{_digest_around(value, known)}{python}>{call}'


def is_same(stored: Any, given: Any) -> bool:
  """Return whether plain data is equal, or names the same objects.

  Functions that other versions of Python compiled only need the same name.

  Args:
    stored: Data of a run; earlier versions did not tell apart functions with
      the same code and other globals, nor classes and their instances, and
      did not store the version of Python.
    given: Data of a command.
  """
  if isinstance(stored, list) and isinstance(given, list):
    pairs = zip(stored, given)
    return len(stored) == len(given) and all(is_same(x, y) for x, y in pairs)
  if isinstance(stored, str) and isinstance(given, str):
    one, other = map(_COMPILED.search, (stored, given))
    if one and other and one[1] != other[1]:
      return _COMPILED.sub('', stored) == _COMPILED.sub('', given)
    unmarked = re.sub(r'(<.*-[0-9a-f]{8})-py3\.\d+>', r'\1>', given)
    earlier = re.sub(r'(<.*-[0-9a-f]{8})-[0-9a-f]{8}>', r'\1>', unmarked)
    same_class = re.sub(r'(<.*>)\(\)$', r'\1', given)
    return stored in (given, unmarked, earlier, same_class)
  return stored == given


def _has_code(value):
  """Return whether compiled code is part of the name of an object."""
  if isinstance(value, functools.partial):
    parts = value.func, *value.args, *value.keywords.values()
    return any(map(_has_code, parts))
  return isinstance(value, types.FunctionType)


def _digest(value):
  """Return what tells functions of the same name apart, '' for others."""
  parts: list[Any]
  if isinstance(value, functools.partial):
    keywords = sorted(value.keywords.items())
    parts = [name_of(value.func), value.args, keywords]
  elif isinstance(value, types.FunctionType):
    cells = [x.cell_contents for x in value.__closure__ or ()]
    parts = [_list_code(value.__code__), value.__defaults__, cells]
  else:
    return ''
  return _checksum(parts)


def _digest_around(value, known=()):
  """Return the same for what the code uses from outside, '' if nothing."""
  used: dict[str, Any] = {}
  if isinstance(value, functools.partial):
    used = {f'{i}': x for i, x in enumerate([value.func, *value.args])}
    used.update(value.keywords)
  elif isinstance(value, types.FunctionType):
    read, written = _list_globals(value.__code__)
    around = {**value.__globals__, **(value.__kwdefaults__ or {})}
    names = (read - written) | {*(value.__kwdefaults__ or ())}
    used = {x: around[x] for x in names if x in around}
    cells = zip(value.__code__.co_freevars, value.__closure__ or ())
    # Other contents of cells are in the digest already.
    used.update((k, x) for k, x in _open(cells) if callable(x))
  known = (*known, value)
  parts = {
    k: _describe(x, known)
    for k, x in sorted(used.items())
    if not isinstance(x, types.ModuleType)
  }
  return _checksum(parts) if any(parts.values()) else ''


def _open(cells):
  for name, cell in cells:
    # Some cells are still empty.
    with contextlib.suppress(ValueError):
      yield name, cell.cell_contents


def _describe(value, known):
  """Return a text about a value that code uses."""
  if not callable(value):
    return repr(to_plain(value, known))
  if any(value is x for x in known):
    return ''
  name = getattr(value, '__qualname__', type(value).__qualname__)
  return f'{name}{_digest(value)}{_digest_around(value, known)}'


def _list_globals(code):
  """Return the names of globals that code reads, and those that it sets."""
  read, written = set(), set()
  for step in dis.get_instructions(code):
    if step.opname in ('LOAD_GLOBAL', 'LOAD_NAME'):
      read.add(step.argval)
    elif step.opname in ('STORE_GLOBAL', 'DELETE_GLOBAL'):
      written.add(step.argval)
  for inner in code.co_consts:
    if isinstance(inner, types.CodeType):
      more = _list_globals(inner)
      read, written = read | more[0], written | more[1]
  return read, written


def _checksum(parts):
  # Addresses differ in another process, as does the order of sets. Names within
  # are those of earlier versions.
  text = re.sub(' at 0x[0-9a-fA-F]+', '', repr(_in_order(parts)))
  text = re.sub(r'(-[0-9a-f]{8})-py3\.\d+>', r'\1>', text)
  return f'-{zlib.crc32(text.encode()):08x}'


def _in_order(value):
  """Return a value with sorted lists in place of sets.

  Sets of numbers stay: they have the same order in every process, and the names
  in earlier runs depend on it.
  """
  if isinstance(value, (set, frozenset)):
    if all(isinstance(x, numbers.Number) for x in value):
      return value
    return sorted(map(_in_order, value), key=repr)
  if type(value) in (list, tuple):
    return type(value)(map(_in_order, value))
  if type(value) is dict:
    return {key: _in_order(item) for key, item in value.items()}
  return value


def _list_code(code):
  """Return what code does, wherever it stands."""
  consts = [
    _list_code(x) if isinstance(x, types.CodeType) else x
    for x in code.co_consts
  ]
  return [code.co_code, code.co_names, consts]


def resolve(name: str, trust: Trust = NOTHING) -> Any:
  """Return the object with a name of the form `module:qualname`, or `module:`.

  Names of objects in `__main__` may have another form, see `name_of`.

  Raises:
    NotTrusted: If a file may not use the name.
    UsageError: If the module or the name in it does not exist, or the name
      stands for an object that cannot be found, see `name_of`.
  """
  if name.startswith('<'):
    return _find_in_main(name, trust)
  check_place(name.partition(':')[0], name, trust)
  try:
    try:
      value = pkgutil.resolve_name(name)
    except AttributeError:
      # A module that its package does not import.
      value = importlib.import_module(name.replace(':', '.'))
  except (ImportError, AttributeError, ValueError) as error:
    raise errors.UsageError(f'Cannot find {name!r}: {error}.') from None
  check_value(value, name, trust)
  return value


def _find_in_main(name, trust):
  """Return the same object of the main program, such as a notebook."""
  qualname = re.sub('^<__main__:|-.*|>$', '', name)
  value = None
  with contextlib.suppress(AttributeError):
    value = operator.attrgetter(qualname)(sys.modules['__main__'])
  if value is None or not is_same(name, name_of(value)):
    raise errors.UsageError(
      f'This run used the object {name}, which cannot be restored by name '
      'here. Functions and classes of a program or notebook are found in that '
      'program, unless they change; what a module of yours defines is found '
      'everywhere, as `module:name`.'
    )
  if not trust.covers(f'__main__:{qualname}'):
    raise _refusal(f'__main__:{qualname}')
  return value


def check_place(module: str, name: str, trust: Trust) -> None:
  """Check that a module may be imported to resolve a name.

  Raises:
    NotTrusted: If not.
  """
  if not (trust.covers(name) or Trust(PROJECT).covers(module)):
    raise _refusal(name)


def check_value(value: Any, name: str, trust: Trust) -> None:
  """Check that the object found under a name may be used.

  What counts is the module that defines it: trusting a module does not extend
  to what it imports.

  Args:
    value: Object that the name refers to.
    name: Name, such as `module:Class` or `module.Class`.
    trust: What the user trusts.

  Raises:
    NotTrusted: If it may not be used.
  """
  if trust.everything or name.replace(':', '.') in trust.names:
    return
  home = None
  if isinstance(value, types.ModuleType):
    home = value.__name__
  elif isinstance(value, (type, types.FunctionType)):
    home = f'{value.__module__}.{value.__qualname__}'
  if home and (trust.covers(home) or home in _nameable):
    return
  raise _refusal(name)


def check_env_id(env_id: Any, trust: Trust) -> None:
  """Check that an id such as `module:Name-v0` imports a trusted module.

  Args:
    env_id: Id of an environment; other values are accepted, and so are the
      names of objects, see `name_of`, from which nothing is imported.
    trust: What the user trusts.

  Raises:
    NotTrusted: If the module is not trusted.
  """
  if isinstance(env_id, str) and ':' in env_id and env_id[0] != '<':
    module, _, name = env_id.partition(':')
    # A function of this project might do anything, an environment does not.
    own = Trust(PROJECT).covers(module) and not name.isidentifier()
    if not (own or trust.covers(module)):
      raise _refusal(env_id)


def check_pickle(path: str, trust: Trust) -> None:
  """Check that the user has named a file that can contain code.

  Raises:
    NotTrusted: If not.
  """
  if not trust.covers(path):
    raise NotTrusted(
      f'The stored parameters name the file {path!r}, whose format can contain '
      'code. If you know where it comes from, add --trust '
      f'{path} to the command.'
    )


def _refusal(name):
  colon = ':' if ':' in name else '.'
  module = name.rpartition(colon)[0] or name
  return NotTrusted(
    f'The stored name {name!r} is neither one that this project allows in '
    'files nor from a module that you trust. If you know where the file comes '
    f'from, add --trust {module} to the command, or trust={module!r} to the '
    'call.'
  )


# Types of numbers that `tolist` makes those of Python.
_PLAIN = tuple(np.dtype(x) for x in '? b B h H i I q Q e f d'.split())


def to_plain(value: Any, known: tuple[Any, ...] = ()) -> Any:
  """Convert a value to built-in types that any YAML reader loads safely.

  Functions and classes become `{reference: 'module:qualname'}`, tuples and sets
  become lists, and unknown objects become strings.

  Args:
    value: Value.
    known: See `name_of`.
  """
  if value is None or isinstance(value, bool):
    return value
  if isinstance(value, str):
    # Strings of NumPy and of enumerations become built-in ones.
    return str.__str__(value)
  if isinstance(value, np.bool_):
    return bool(value)
  if isinstance(value, numbers.Integral):
    return int(value)
  if isinstance(value, numbers.Real):
    return float(value)
  if isinstance(value, np.ndarray):
    # The lists of most arrays are plain already, and may be long.
    plain = value.tolist()
    return plain if value.dtype in _PLAIN else to_plain(plain, known)
  if isinstance(value, dict):
    return {str(key): to_plain(item, known) for key, item in dict.items(value)}
  if isinstance(value, (set, frozenset)):
    value = list(_in_order(value))
  if isinstance(value, (list, tuple)):
    return [to_plain(item, known) for item in value]
  if callable(value):
    return {'reference': name_of(value, known)}
  return str(value)
