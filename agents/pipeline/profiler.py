"""Where the time goes: nested scopes, cheap enough for every step."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agents.pipeline import logs


class Profiler:
  """Count and time scopes, which form paths.

  `with profiler('train'), profiler('envstep'):` adds to `/train/envstep`. The
  empty name stands for the root `/`, which surrounds all others. One scope
  costs about a microsecond. For the main thread only.

  Args:
    path: File to append lines of JSON to, or None.
    level: How deep scopes are recorded: 0 for the root only, -1 for all.
  """

  def __init__(self, path: str | None = None, level: int = -1) -> None:
    self._path = path
    self._level = level
    self._current, self._depth = '', 0
    self._totals: dict[str, tuple[int, float]] = {}
    self._outside = 0.0

  @contextlib.contextmanager
  def __call__(self, name: str) -> Iterator[None]:
    """Time a scope within the current one."""
    outer, depth = self._current, self._depth
    assert name or not outer, ('the root is within', outer)
    self._current = path = f'{outer.rstrip("/")}/{name}'
    # What is outside of the root has the same paths, and the same depth.
    self._depth += bool(name)
    began = time.perf_counter()
    try:
      yield
    finally:
      seconds = time.perf_counter() - began
      if not 0 <= self._level < self._depth:
        occurs, before = self._totals.get(path, (0, 0.0))
        self._totals[path] = occurs + 1, before + seconds
        if name and not outer:
          self._outside += seconds
      self._current, self._depth = outer, depth

  def totals(self) -> dict[str, tuple[int, float]]:
    """Return occurrences and seconds since `pack` by path."""
    return dict(self._totals)

  def pack(
    self, meta: Mapping[str, Any] | None = None
  ) -> dict[str, dict[str, float]]:
    """Write a line with all scopes that have ended, and start again.

    Args:
      meta: Dict of where the run is, as `Monitor.meta`.

    Returns:
      Dict from path to dict of `occurs` and `seconds`. The root has `outside`
      too, the seconds of scopes such as `/test` that it did not surround.
    """
    data = {
      path: {'occurs': occurs, 'seconds': seconds}
      for path, (occurs, seconds) in self._totals.items()
    }
    if '/' in data:
      data['/']['outside'] = self._outside
    if self._path and data:
      logs.append_json(self._path, {'meta': dict(meta or {}), 'data': data})
    self._totals, self._outside = {}, 0.0
    return data
