"""Dictionary with attribute access that refuses names it does not know."""

from typing import Any

from agents.tools import attr_dict


class AttrDict(attr_dict.AttrDict):
  """Shared `AttrDict` with the strictness of PlaNet.

  A missing key is an AttributeError from `d.x` and `d['x']` that names the
  nearest known one; that of PPO is None instead. Use `get` for keys that may
  be missing. Created without arguments, it is unlocked.
  """

  def __init__(
    self,
    *args: Any,
    _unlocked: bool | None = None,
    _strict: bool = True,
    **kwargs: Any,
  ) -> None:
    if _unlocked is None:
      _unlocked = not (args or kwargs)
    super().__init__(*args, _unlocked=_unlocked, _strict=_strict, **kwargs)
