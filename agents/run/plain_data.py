"""Configurations as data that any YAML reader can load safely.

Functions and classes become `{reference: 'module:qualname'}`, tuples lists.
"""

import numbers
from typing import Any

import numpy as np


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
  if callable(value):
    return {'reference': reference(value)}
  return str(value)


def reference(value: Any) -> str:
  """Return the name of a function or class as `module:qualname`."""
  module = getattr(value, '__module__', None)
  name = getattr(value, '__qualname__', None) or repr(value)
  return f'{module}:{name}'
