"""One life of a run: what happens between its first step and its end.

Each system gives its loop as a generator of ticks, such as executions of a
graph or cycles of rollouts and updates, and a function that saves. When to
save and how to end is decided here, for all of them.
"""

import contextlib
import logging
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from agents.run import errors, stopping

_logger = logging.getLogger(__name__)
_Record = TypeVar('_Record')


def run(
  ticks: Generator[_Record | None, None, None],
  save: Callable[[bool], bool],
  comm: Any,
  should_stop: Callable[[], bool] = lambda: False,
) -> Generator[_Record, None, bool]:
  """Train until the ticks end or the user asks to stop.

  Saves when a checkpoint is due, at the end, when the caller stops iterating,
  and before an error in a tick is raised, unless nothing was done since the
  last time. Does not save a training that has diverged. After an error, only a
  process without others saves, because the others would not join in.

  Args:
    ticks: Generator that trains for a while and yields a record or None. It
      may raise `StopRequested`.
    save: Function of whether to write a checkpoint in any case, or only if it
      is due. Returns whether that makes the next one unnecessary if nothing
      else happens.
    comm: Communicator of the ranks, which must all make this call.
    should_stop: Function that is called after each tick, for ticks that do not
      stop by themselves.

  Yields:
    The records.

  Returns:
    Whether the user asked to stop.
  """
  unsaved = stopped = False

  def save_rest():
    if unsaved:
      save(True)

  with contextlib.closing(ticks):
    while not stopped:
      try:
        record = next(ticks)
      except StopIteration:
        break
      except stopping.StopRequested:
        stopped = True
        break
      except errors.NotFinite:
        raise
      except BaseException:
        if comm.Get_size() == 1:
          _try(save_rest)
        raise
      stopped = should_stop()
      unsaved = stopped or not save(False)
      if record is not None:
        with stopping.on_close(save_rest):
          yield record
  save_rest()
  return stopped


def _try(save):
  """Save after an error, which counts more than one of saving."""
  try:
    save()
  except Exception as error:
    _logger.warning('Cannot save after an error: %s', error)


def is_asked(comm: Any) -> bool:
  """Return whether the user has asked any of the ranks to stop."""
  return any(comm.allgather(stopping.requested()))
