"""Functions and classes that files name, and who may name which.

The folder of a run may come from anybody, and must not be a program. What its
files name is used only if it was written to be named (`nameable`), or if the
user trusts the module where it lies.
"""

import contextlib
import dataclasses
import numbers
import pkgutil
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from agents.run import errors

HELP = 'Module of your own that the stored run may import. Can be repeated.'
PROJECT = ('agents', 'planet', 'baselines_her')
_nameable: set[str] = set()
_Named = TypeVar('_Named', bound=Callable[..., Any])


class NotTrusted(errors.UsageError):
  """A file names what it may not name."""


@dataclasses.dataclass(frozen=True)
class Trust:
  """What files may name beside the parts of this project made for it.

  Args:
    names: Tuple of modules, packages, or full names such as `module.Class`.
    everything: Whether all names are allowed, which is right for those that
      come from the user's own modules and words instead of a file.
  """

  names: tuple[str, ...] = ()
  everything: bool = False

  def covers(self, name: str) -> bool:
    """Whether a name is one of the trusted ones or lies in one of them."""
    dotted = name.replace(':', '.')
    inside = (f'{dotted}.'.startswith(f'{x}.') for x in self.names)
    return self.everything or any(inside)

  def and_typed(self, texts: Iterable[Any]) -> 'Trust':
    """Trust in what the user has typed, too.

    Args:
      texts: Values of the command line: ids of environments such as
        `my_package:MyEnv-v0`, dotted names, paths, or anything else.
    """
    names = [x for x in texts if isinstance(x, str) and re.search('[.:/]', x)]
    modules = [re.sub(r'^(\w+(\.\w+)*):.*', r'\1', x) for x in names]
    return dataclasses.replace(self, names=(*self.names, *modules))


NOTHING = Trust()
EVERYTHING = Trust(everything=True)


def parse(texts: Iterable[str] | Trust | None) -> Trust:
  """Trust from the values of `--trust`, each of which may have commas."""
  if isinstance(texts, Trust):
    return texts
  names = ','.join(texts or ()).split(',')
  return Trust(tuple(x.strip() for x in names if x.strip()))


def nameable(value: _Named) -> _Named:
  """Let files name a function or class; a decorator.

  It has to be harmless with any arguments that can stand in a file.
  """
  _nameable.add(f'{value.__module__}.{value.__qualname__}')
  return value


def name_of(value: Any) -> str:
  """Return a text to store for an object.

  Returns:
    `module:qualname` if that finds the object again in another process, and a
    text in angle brackets, which `resolve` refuses, if not.
  """
  known = value if hasattr(value, '__qualname__') else type(value)
  name = f'{known.__module__}:{known.__qualname__}'
  if known is value and known.__module__ != '__main__':
    with contextlib.suppress(ImportError, AttributeError, ValueError):
      if pkgutil.resolve_name(name) is value:
        return name
  return f'<{name}>'


def resolve(name: str, trust: Trust = NOTHING) -> Any:
  """Function or class from its name as `module:qualname`.

  Raises:
    NotTrusted: If a file may not name it.
    UsageError: If the module or the name within it does not exist, or the
      name is that of an object that cannot be found, see `name_of`.
  """
  if name.startswith('<'):
    raise errors.UsageError(
      f'An object was used here, {name}, of which only the name is stored; '
      'give one of a module of your own, as `module:name`.'
    )
  check_place(name.partition(':')[0], name, trust)
  try:
    value = pkgutil.resolve_name(name)
  except (ImportError, AttributeError, ValueError) as error:
    raise errors.UsageError(f'Cannot find {name!r}: {error}.') from None
  check_value(value, name, trust)
  return value


def check_place(module: str, name: str, trust: Trust) -> None:
  """Make sure that a module may be imported to look for a name.

  Raises:
    NotTrusted: If not.
  """
  if not (trust.covers(name) or Trust(PROJECT).covers(module)):
    raise _refusal(name)


def check_value(value: Any, name: str, trust: Trust) -> None:
  """Make sure that what was found under a name may be used.

  It counts where it was defined: a trusted module does not vouch for what it
  imports.

  Args:
    value: What the name refers to.
    name: The name, such as `module:Class` or `module.Class`.
    trust: What the user trusts.

  Raises:
    NotTrusted: If it may not be used.
  """
  if trust.everything or name.replace(':', '.') in trust.names:
    return
  if isinstance(value, (type, types.FunctionType)):
    home = f'{value.__module__}.{value.__qualname__}'
    if trust.covers(home) or home in _nameable:
      return
  raise _refusal(name)


def check_env_id(env_id: Any, trust: Trust) -> None:
  """Make sure that an id such as `module:Name-v0` imports a trusted module.

  Args:
    env_id: Id of an environment; anything else is fine.
    trust: What the user trusts.

  Raises:
    NotTrusted: If it does not.
  """
  if isinstance(env_id, str) and ':' in env_id:
    if not trust.covers(env_id.partition(':')[0]):
      raise _refusal(env_id)


def check_pickle(path: str, trust: Trust) -> None:
  """Make sure that a file that can hold a program is one that the user named.

  Raises:
    NotTrusted: If not.
  """
  if not trust.covers(path):
    raise NotTrusted(
      f'The stored parameters name the file {path!r}, whose format can hold '
      'programs; if you know where it comes from, add --trust '
      f'{path} to the command.'
    )


def _refusal(name):
  colon = ':' if ':' in name else '.'
  module = name.rpartition(colon)[0] or name
  return NotTrusted(
    f'The stored name {name!r} is neither a part of this project that files '
    'may name nor in a module that you trust; if you know it and where the '
    f'file comes from, add --trust {module} to the command.'
  )


def to_plain(value: Any) -> Any:
  """Convert a value to built-in types, which any YAML reader loads safely.

  Functions and classes become `{reference: 'module:qualname'}`, tuples lists,
  unknown objects text.
  """
  if value is None or isinstance(value, (bool, str)):
    return value
  if isinstance(value, numbers.Integral):
    return int(value)
  if isinstance(value, numbers.Real):
    return float(value)
  if isinstance(value, np.ndarray):
    return value.tolist()
  if isinstance(value, dict):
    return {str(key): to_plain(item) for key, item in dict.items(value)}
  if isinstance(value, (list, tuple, set)):
    return [to_plain(item) for item in value]
  if callable(value):
    return {'reference': reference(value)}
  return str(value)


def reference(value: Any) -> str:
  """Return the name of a function or class as `module:qualname`."""
  module = getattr(value, '__module__', None)
  name = getattr(value, '__qualname__', None) or repr(value)
  return f'{module}:{name}'
