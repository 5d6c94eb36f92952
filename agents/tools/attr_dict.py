"""Dictionary with attribute access and a lock against accidental writes."""

import contextlib
import functools
import numbers
import os
from collections.abc import Iterator
from typing import Any

from agents.run import files


class AttrDict(dict):
  """Wrap a dictionary to access its keys as attributes.

  Attributes can be set only while the dictionary is unlocked: if it was created
  that way, or inside `with obj.unlocked:`. Names that start with two
  underscores are never keys. Missing attributes are None, and items can always
  be written, as in the original of PPO; `planet.tools.AttrDict` is stricter.

  Args:
    *args: Passed on to `dict`.
    _unlocked: Whether attributes may be set.
    **kwargs: Passed on to `dict`.
  """

  def __init__(self, *args: Any, _unlocked: bool = False, **kwargs: Any):
    super().__init__(*args, **kwargs)
    super().__setattr__('_unlocked', _unlocked)

  def __reduce__(self):
    constructor = functools.partial(type(self), _unlocked=self._unlocked)
    return constructor, (dict(self),)

  def __getattr__(self, name):
    if name.startswith('__'):
      raise AttributeError(name)
    return self.get(name)

  def __setattr__(self, name, value):
    self._check_write(name)
    super().__setitem__(name, value)

  def __delattr__(self, name):
    self._check_write(name)
    super().__delitem__(name)

  def _check_write(self, name):
    if isinstance(name, str) and name.startswith('__'):
      raise AttributeError(f'Cannot set magic attribute {name!r}.')
    if not self._unlocked:
      raise RuntimeError(
        f'Cannot set attribute {name!r}. '
        "Use 'with obj.unlocked:' scope to set attributes."
      )

  def update(self, *args: Any, **kwargs: Any) -> Any:
    """Set several keys, if unlocked; returns the dictionary itself."""
    values = dict(*args, **kwargs)
    for key in values:
      self._check_write(key)
    super().update(values)
    return self

  def copy(self, _unlocked: bool = False) -> 'AttrDict':
    """Return a shallow copy of the same type, locked by default."""
    return type(self)(dict(self), _unlocked=_unlocked)

  @property
  @contextlib.contextmanager
  def unlocked(self) -> Iterator[Any]:
    """Context in which the dictionary is unlocked; locked afterwards."""
    self.unlock()
    try:
      yield self
    finally:
      self.lock()

  def lock(self) -> None:
    self._lock(False)

  def unlock(self) -> None:
    self._lock(True)

  def _lock(self, unlocked):
    super().__setattr__('_unlocked', unlocked)
    for value in self.values():
      if isinstance(value, AttrDict):
        value._lock(unlocked)

  def summarize(self) -> str:
    """Return one line per key, with short numbers and function names."""
    return '\n'.join(f'{key}: {_format(self.get(key))}' for key in self)

  def __repr__(self):
    items = (f'{key}={_format(self.get(key))}' for key in self)
    return f'{type(self).__name__}({", ".join(items)})'

  def save(self, filename: str) -> None:
    """Write plain values to a .yaml file; needs only built-in types."""
    assert os.path.splitext(filename)[1] in ('.yml', '.yaml'), filename
    files.write_yaml(filename, dict(self))

  @classmethod
  def load(cls, filename: str) -> 'AttrDict':
    """Read a .yaml file written by `save`."""
    assert os.path.splitext(filename)[1] in ('.yml', '.yaml'), filename
    return cls(files.read_yaml(filename))


def _format(value):
  if isinstance(value, (list, tuple)):
    inner = ', '.join(_format(x) for x in value)
    return f'[{inner}]' if isinstance(value, list) else f'({inner})'
  if callable(value):
    return getattr(value, '__name__', None) or repr(value)
  if isinstance(value, numbers.Integral) or not isinstance(value, numbers.Real):
    return str(value)
  size: Any = abs(value)
  inside = 1e-3 < size < 1e6 or value == 0
  return f'{value:.3f}' if inside else f'{value:4.1e}'
