"""Dictionary with attribute access that raises an error for unknown keys."""

from typing import Any

from agents.run import errors
from agents.tools import attr_dict


class AttrDict(attr_dict.AttrDict):
  """Shared `AttrDict` that raises an error for missing keys.

  `d.x` and `d['x']` raise an AttributeError that suggests the nearest key,
  while the class of PPO returns None. Use `get` for optional keys. Locking
  applies to items and attributes. An empty one is created unlocked.
  """

  def __init__(
    self, *args: Any, _unlocked: bool | None = None, **kwargs: Any
  ) -> None:
    if _unlocked is None:
      _unlocked = not (args or kwargs)
    super().__init__(*args, _unlocked=_unlocked, **kwargs)

  def __getattr__(self, name):
    if name.startswith('__'):
      raise AttributeError(name)
    return self[name]

  def __missing__(self, key):
    known = [str(x) for x in self]
    raise AttributeError(
      f'Key {key!r} is unknown. {errors.suggest(str(key), known)}'
    )

  def __setitem__(self, key, value):
    self._check_write(key)
    super().__setitem__(key, value)

  def __delitem__(self, key):
    self._check_write(key)
    super().__delitem__(key)

  def get(self, key: Any, default: Any = None) -> Any:
    """Return a value or the default; `dict.get` takes no keywords."""
    return super().get(key, default)
