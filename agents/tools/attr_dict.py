"""Dictionary with attribute access that is locked against stray writes."""

import contextlib
import numbers
import os
from collections.abc import Iterator
from typing import Any

from agents.run import errors, references


@references.nameable
class AttrDict(dict):
  """Wrap a dictionary to access its keys as attributes.

  Writing is possible while the dictionary is unlocked: when it was created so,
  or inside of `with obj.unlocked:`. Names that start with
  two underscores are never keys.

  The two originals treat missing keys differently. By default, as in PPO, a
  missing attribute is None, and writing items (`d['x'] = 1`) is always
  allowed. With `_strict`, as in PlaNet, a missing key is an AttributeError
  from `d.x` and `d['x']`, and writing items needs the lock to be open.

  Args:
    *args: Passed on to `dict`.
    _unlocked: Whether attributes may be set.
    _strict: Whether missing keys raise an AttributeError that names the
      nearest known one.
    **kwargs: Passed on to `dict`.
  """

  def __init__(
    self,
    *args: Any,
    _unlocked: bool = False,
    _strict: bool = False,
    **kwargs: Any,
  ):
    super().__init__(*args, **kwargs)
    super().__setattr__('_unlocked', _unlocked)
    super().__setattr__('_strict', _strict)

  def __reduce__(self):
    return _rebuild, (type(self), dict(self), self._unlocked, self._strict)

  def __getattr__(self, name):
    if name.startswith('__'):
      raise AttributeError(name)
    return self[name] if self._strict else self.get(name)

  def __missing__(self, key):
    if not self._strict:
      raise KeyError(key)
    known = [str(x) for x in self]
    raise AttributeError(
      f'Key {key!r} is unknown. {errors.suggest(str(key), known)}'
    )

  def __setattr__(self, name, value):
    self._check_write(name)
    super().__setitem__(name, value)

  def __setitem__(self, key, value):
    self._check_item_write(key)
    super().__setitem__(key, value)

  def __delattr__(self, name):
    self._check_write(name)
    super().__delitem__(name)

  def __delitem__(self, key):
    self._check_item_write(key)
    super().__delitem__(key)

  def _check_item_write(self, key):
    if self._strict:
      self._check_write(key)

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
    """Shallow copy of the same type and strictness, locked by default."""
    return type(self)(dict(self), _unlocked=_unlocked, _strict=self._strict)

  @property
  @contextlib.contextmanager
  def unlocked(self) -> Iterator[Any]:
    """Context in which the dictionary can be written; locked afterwards."""
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
    """One line per key, with short numbers and the names of functions."""
    return '\n'.join(f'{key}: {_format(self.get(key))}' for key in self)

  def __repr__(self):
    items = (f'{key}={_format(self.get(key))}' for key in self)
    return f'{type(self).__name__}({", ".join(items)})'

  def save(self, filename: str) -> None:
    """Write plain values to a .yaml file; needs only built-in types."""
    assert os.path.splitext(filename)[1] in ('.yml', '.yaml'), filename
    from agents.run import files

    files.write_yaml(filename, dict(self))

  @classmethod
  def load(cls, filename: str) -> 'AttrDict':
    """Read a .yaml file that `save` has written."""
    assert os.path.splitext(filename)[1] in ('.yml', '.yaml'), filename
    from agents.run import files

    return cls(files.read_yaml(filename))


def _rebuild(cls, values, unlocked, strict):
  return cls(values, _unlocked=unlocked, _strict=strict)


def _format(value):
  if isinstance(value, bool) or value is None:
    return str(value)
  if isinstance(value, numbers.Integral):
    return str(value)
  if isinstance(value, numbers.Real):
    size: Any = abs(value)
    inside = 1e-3 < size < 1e6 or value == 0
    return f'{value:.3f}' if inside else f'{value:4.1e}'
  if isinstance(value, AttrDict):
    return repr(value)
  if isinstance(value, (list, tuple)):
    inner = ', '.join(_format(x) for x in value)
    return f'[{inner}]' if isinstance(value, list) else f'({inner})'
  if callable(value):
    return getattr(value, '__name__', None) or repr(value)
  return str(value)
