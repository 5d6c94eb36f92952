"""Dictionary with attribute access that refuses names it does not know."""

from typing import Any

from agents.run import errors
from agents.tools import attr_dict


class AttrDict(attr_dict.AttrDict):
  """Shared `AttrDict` with the strictness of PlaNet.

  A missing key is an AttributeError from `d.x` and `d['x']` that names the
  nearest known one; that of PPO is None instead. Use `get` for keys that may
  be missing. Items are locked as attributes are. Created without arguments, it
  is unlocked.
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
