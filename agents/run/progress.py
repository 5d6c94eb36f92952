"""Progress of long work: a bar on terminals, occasional lines elsewhere."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

import tqdm

from agents.run import training


def set_activity(text: str) -> None:
  """Set what the current step is doing, such as an episode; '' to clear."""
  Progress.activity = text


class Progress:
  """Show progress, even while one step takes minutes.

  Terminals get a tqdm bar per phase. Other streams get a plain line at the
  start and then one every `interval` seconds.

  Args:
    status: Function that returns a dict of further values to show, such as
      the number of episodes; None values are left out.
    max_step: Global step at which the run ends, to estimate the time left.
    stream: Text stream, standard error by default.
    interval: Seconds between two plain lines.
    unit: Short name of a step.

  Attributes:
    activity: What the current step is doing; shared by the whole process,
      because the code that sets it is far from the code that shows it.
  """

  activity = ''

  def __init__(
    self,
    status: Callable[[], dict[str, Any]] = dict,
    max_step: float | None = None,
    stream: TextIO | None = None,
    interval: float = 30.0,
    unit: str = 'ex',
  ):
    self._unit = unit
    self._status = status
    self._max_step = max_step
    self._stream = stream or sys.stderr
    self._interval = interval
    self._fancy = self._stream.isatty()
    self._bar: Any = None
    self._phase = ''
    self._steps = self._done = self._global_step = 0
    self._first: tuple[float, int] | None = None
    self._last_line, self._rate = -math.inf, 0.0
    self._closed = threading.Event()
    self._lock = threading.RLock()
    self._owner = training.current()
    self._ticker = threading.Thread(target=self._tick, daemon=True)
    self._ticker.start()

  def start_phase(
    self, name: str, steps: int, done: int, global_step: int
  ) -> None:
    """Start showing a phase.

    Args:
      name: Name of the phase, including the epoch.
      steps: Number of steps of the phase.
      done: Number of these steps that are already done.
      global_step: Step over all phases.
    """
    with self._lock:
      self._phase, self._steps, self._done = name, steps, done
      self._global_step = global_step
      self._first = self._first or (time.monotonic(), global_step)
      if self._fancy:
        self._finish_bar()
        self._bar = tqdm.tqdm(
          total=steps,
          initial=done,
          desc=name,
          file=self._stream,
          dynamic_ncols=True,
          leave=False,
          unit=self._unit,
        )
      self._show()

  def update(self, amount: int, global_step: int) -> None:
    """Advance the phase by some steps."""
    with self._lock:
      self._done += amount
      self._global_step = global_step
      assert self._first, 'a phase has been started'
      began, first_step = self._first
      seconds = max(1e-9, time.monotonic() - began)
      self._rate = (global_step - first_step) / seconds
      if self._bar is not None:
        # Draws at most ten times a second; the ticker adds the other values.
        self._bar.update(amount)
      else:
        self._show()

  def write(self, text: str) -> None:
    """Print a line that stays visible."""
    with self._lock:
      tqdm.tqdm.write(text, file=self._stream)
      self._stream.flush()

  def close(self) -> None:
    """Stop showing progress."""
    self._closed.set()
    with self._lock:
      self._finish_bar()
    self._ticker.join(2)

  def _finish_bar(self):
    if self._bar is not None:
      self._bar.close()
      self._bar = None

  def _tick(self):
    with training.as_part_of(self._owner):
      while not self._closed.wait(1.0):
        with self._lock:
          if self._phase:
            self._show()

  def _show(self):
    if self._closed.is_set():
      return
    if self._bar is not None:
      self._bar.set_postfix_str(self._describe())
      return
    now = time.monotonic()
    if now - self._last_line >= self._interval and not self._fancy:
      self._last_line = now
      self.write(
        f'{self._phase}: {self._done}/{self._steps}, {self._describe()}'
      )

  def _describe(self):
    values: dict[str, Any] = {'step': self._global_step, **self._status()}
    if self._rate and not self._fancy:
      values[f'{self._unit}/s'] = f'{self._rate:.3g}'
    if self._rate and self._max_step:
      left = max(0, self._max_step - self._global_step) / self._rate
      values['left'] = tqdm.tqdm.format_interval(left)
    values['mem'] = f'{resident_memory() / 2**30:.1f}G'
    text = ', '.join(f'{k} {v}' for k, v in values.items() if v is not None)
    return f'{text}, {self.activity}' if self.activity else text


def resident_memory() -> int:
  """Return the resident memory of this process in bytes, 0 if unknown."""
  try:
    with open('/proc/self/statm') as file_:
      return int(file_.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
  except (OSError, ValueError, IndexError):
    return 0
