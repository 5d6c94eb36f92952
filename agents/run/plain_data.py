"""Configurations as data that any YAML reader can load safely.

Functions and classes become `{reference: 'module:qualname'}`, partial calls
`{partial: 'module:qualname', args: [...], kwargs: {...}}`, tuples lists.
"""

import functools
import numbers
from typing import Any

import numpy as np

from agents.run import references


def to_plain(value: Any) -> Any:
  """Convert a value to built-in types; unknown objects become text."""
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
  if isinstance(value, functools.partial):
    return {
      'partial': reference(value.func),
      'args': to_plain(value.args),
      'kwargs': to_plain(value.keywords),
    }
  if callable(value):
    return {'reference': reference(value)}
  return str(value)


def from_plain(value: Any, trust: references.Trust = references.NOTHING) -> Any:
  """Undo `to_plain`, importing what is referred to.

  Args:
    value: Plain data, as a rule from a file.
    trust: `references.Trust` in what the data may refer to, beside what is
      made for it.

  Raises:
    NotTrusted: If the data refer to anything else.
    ValueError: If a reference cannot be found.
  """
  if isinstance(value, list):
    return [from_plain(item, trust) for item in value]
  if not isinstance(value, dict):
    return value
  if set(value) == {'reference'}:
    return references.resolve(str(value['reference']), trust)
  if set(value) == {'partial', 'args', 'kwargs'}:
    return functools.partial(
      references.resolve(str(value['partial']), trust),
      *from_plain(value['args'], trust),
      **from_plain(value['kwargs'], trust),
    )
  return {key: from_plain(item, trust) for key, item in value.items()}


def reference(value: Any) -> str:
  """Return the name of a function or class as `module:qualname`."""
  module = getattr(value, '__module__', None)
  name = getattr(value, '__qualname__', None) or repr(value)
  return f'{module}:{name}'
