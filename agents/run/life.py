"""One life of a run, from the folder that it locks to its last checkpoint.

`start` opens a run: a system gives a function that locks it and merges its
settings with those of a command, and one that trains. `run` is the loop: a
system gives its ticks, such as executions of a graph or cycles of rollouts and
updates, and a function that saves. When to save and how to end is decided here.
"""

import contextlib
import logging
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from agents.run import entry, errors, folder, locks, stopping, training

_logger = logging.getLogger(__name__)
_Record = TypeVar('_Record')


def start(
  claim: Callable[[], contextlib.AbstractContextManager[folder.Run]],
  train: Callable[[folder.Run], Generator[_Record, None, Any]],
  comm: Any,
) -> Generator[_Record | str, None, None]:
  """Open a run on the first rank, and train on all ranks.

  Args:
    claim: Function that the first rank calls. It returns a context of the
      locked run, whose `config` is complete, whose `changes` are for the user,
      and which may be `over`.
    train: Generator function of the run. On the other ranks, that has no
      folder, and the `config` of the first one.
    comm: Communicator of the ranks, which must all make this call.

  Yields:
    Sentences for the user on the first rank, and what `train` yields.
  """
  with contextlib.ExitStack() as stack:
    opened = folder.Run(None)
    if comm.Get_rank() == 0:
      opened = stack.enter_context(claim())
    opened.config = comm.bcast(None if opened.over else opened.config)
    yield from opened.changes
    if opened.over:
      yield opened.over
    elif opened.config is not None:
      yield from train(opened)


def run(
  ticks: Generator[_Record | None, None, None],
  save: Callable[[bool], bool],
  comm: Any,
  should_stop: Callable[[], bool] = lambda: False,
) -> Generator[_Record, None, bool]:
  """Train until the ticks end or the user asks to stop.

  Saves when a checkpoint is due, at the end, when the caller stops iterating,
  and before an error in a tick is raised, unless nothing was done since the
  last time. Does not save a training that has diverged, or whose folder is
  gone. After an error, only a process without others saves, because the others
  would not join in.

  Args:
    ticks: Generator that trains for a while and yields a record or None. It
      may raise `StopRequested`.
    save: Function of whether to write a checkpoint in any case, or only if it
      is due. Returns True if everything up to now is saved.
    comm: Communicator of the ranks, which must all make this call.
    should_stop: Function that is called after each tick, for ticks that do not
      stop by themselves.

  Yields:
    The records.

  Returns:
    Whether a tick or `should_stop` stopped the training. False if the ticks
    ended by themselves, which they also may because the user asked for it.
  """
  unsaved = stopped = False

  def save_rest():
    nonlocal unsaved
    if unsaved:
      save(True)
    unsaved = False

  with contextlib.closing(ticks):
    while not stopped:
      try:
        record = next(ticks)
      except StopIteration:
        break
      except stopping.StopRequested:
        stopped = True
        break
      except (errors.NotFinite, locks.Lost):
        raise
      except BaseException:
        if comm.Get_size() == 1:
          _try(save_rest)
        raise
      stopped = should_stop()
      unsaved = stopped or not save(False)
      if record is not None:
        with training.saving(save_rest), stopping.on_close(save_rest):
          yield record
  save_rest()
  return stopped


def _try(save):
  """Save after an error, which counts more than one of saving."""
  try:
    save()
  except Exception as error:
    _, words = entry.explain(error)
    words = (words or str(error)).removeprefix('Error: ')
    _logger.warning('Cannot save after an error: %s', words)


def is_asked(comm: Any) -> bool:
  """Return whether the user has asked any of the ranks to stop."""
  return any(comm.allgather(stopping.requested()))
