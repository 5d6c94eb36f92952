"""Where the time goes: nested scopes, cheap enough for every step."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from agents.pipeline import logs


class Profiler:
  """Count and time scopes, which form paths.

  `with profiler('train'), profiler('envstep'):` adds to `/train/envstep`. The
  empty name stands for the root `/`, which surrounds all others. One scope
  costs less than a microsecond or two. For the main thread only.

  Args:
    path: File to append lines of JSON to, or None.
    level: How deep scopes are recorded: 0 for the root only, -1 for all.
  """

  def __init__(self, path: str | None = None, level: int = -1) -> None:
    self._path = path
    self._level = level
    self._skipped = contextlib.nullcontext()
    # What is outside of the root is kept apart, under the same paths.
    self._root = _Scope(self, '/', 0)
    self._top = _Scope(self, '/', 0)
    self._top.children[''] = self._root
    self._current = self._top

  def __call__(self, name: str) -> contextlib.AbstractContextManager:
    """Context manager of a scope within the current one."""
    scope = self._current.children.get(name)
    return scope if scope is not None else self._add(name)

  def totals(self) -> dict[str, tuple[int, float]]:
    """Return occurrences and seconds since `pack` by path."""
    totals: dict[str, tuple[int, float]] = {}
    for scope in self._list():
      if scope.occurs:
        occurs, seconds = totals.get(scope.path, (0, 0.0))
        occurs, seconds = occurs + scope.occurs, seconds + scope.seconds
        totals[scope.path] = occurs, seconds
    return totals

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
      for path, (occurs, seconds) in self.totals().items()
    }
    if '/' in data:
      children = [v for k, v in self._top.children.items() if k]
      data['/']['outside'] = sum(getattr(x, 'seconds', 0) for x in children)
    if self._path and data:
      logs.append_json(self._path, {'meta': dict(meta or {}), 'data': data})
    for scope in self._list():
      scope.occurs, scope.seconds = 0, 0.0
    return data

  def _add(self, name):
    assert name, ('within', self._current.path)
    scope: Any
    if 0 <= self._level <= self._current.depth:
      scope = self._skipped
    else:
      path = f'{self._current.path.rstrip("/")}/{name}'
      scope = _Scope(self, path, self._current.depth + 1)
    self._current.children[name] = scope
    return scope

  def _list(self):
    """All scopes, parents before children."""
    waiting, found = [self._top], []
    while waiting:
      scope = waiting.pop()
      if isinstance(scope, _Scope):
        found.append(scope)
        waiting += reversed(scope.children.values())
    return found


@dataclasses.dataclass(slots=True, eq=False)
class _Scope:
  """One path; made once and entered again and again."""

  profiler: Profiler
  path: str
  depth: int
  children: dict[str, Any] = dataclasses.field(default_factory=dict)
  occurs: int = 0
  seconds: float = 0.0
  outer: Any = None
  began: float = 0.0

  def __enter__(self):
    self.outer = self.profiler._current
    self.profiler._current = self
    self.began = time.perf_counter()

  def __exit__(self, *unused_error):
    self.seconds += time.perf_counter() - self.began
    self.occurs += 1
    self.profiler._current = self.outer
