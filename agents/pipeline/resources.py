"""Resource usage of a run: CPU, memory and GPUs."""

import functools
import itertools
import os
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.pipeline import logs
from agents.run import locks

_MEGABYTE = 2**20
_QUERY = 'utilization.gpu,memory.total,memory.used'
_QUERY_SECONDS = 20.0


class ResourceThread(threading.Thread):
  """Sample resources in the background and write their statistics.

  Names are `/cpu/per/<core>` and `/cpu/all/total` (percent), `/cpu/memory/`
  `total`, `used` and `mem` (megabytes; `mem` is this process with all of its
  children), `/gpu/load` (percent, mean over GPUs), `/gpu/memory/` `total` and
  `used` (megabytes, sum over GPUs).

  CPU and memory need the package psutil; without it there is one warning. GPUs
  are read from nvidia-smi, but only those in CUDA_VISIBLE_DEVICES, and none if
  that is not set.

  Args:
    path: File of JSON lines, readable with `logs.read`.
    logger: `Logger` for warnings.
    cpu: Whether to sample CPU and memory.
    gpu: Whether to sample GPUs.
    period: Seconds between samples.
    window: Number of samples per line.
    meta: Function that returns the position in the run, such as
      `lambda: monitor.meta`.
  """

  def __init__(
    self,
    path: str,
    logger: Any,
    cpu: bool = True,
    gpu: bool = True,
    period: float = 2.0,
    window: int = 10,
    meta: Callable[[], dict] = dict,
  ) -> None:
    super().__init__(daemon=True)
    self._path, self._logger = path, logger
    self._period, self._window, self._meta = period, window, meta
    self._stopped = threading.Event()
    self._sources: list[Callable[[], dict[str, float]]] = []
    cards = visible_cards() if gpu else []
    if cards:
      self._sources.append(functools.partial(sample_cards, cards))
    try:
      self._sources += [define_processors()] if cpu else []
    except ImportError:
      logger.warn(
        'CPU and memory usage is not recorded. Run pip install psutil, or add '
        '--no-monitor-cpu.'
      )

  def stop(self) -> None:
    """Write the statistics sampled so far and end the thread."""
    self._stopped.set()
    self.join()

  def run(self) -> None:
    """Sample until `stop` is called."""
    self._sample()  # Here psutil begins its first interval, in this thread.
    if not self._sources:
      return
    monitor, count = logs.Monitor(self._path), 0
    while self._sources and not self._stopped.is_set():
      if not self._stopped.wait(self._period):
        count += 1
        for name, value in self._sample().items():
          monitor(name, value)
      if self._stopped.is_set() or count == self._window:
        count = 0
        for key, value in self._meta().items():
          monitor.set_meta(key, value)
        try:
          monitor.pack()
        except locks.Lost:
          return  # The run itself reports it.
        except OSError as error:
          self._logger.warn(f'Resources are no longer recorded: {error}')
          return

  def _sample(self):
    """Dict from name to number; a source that fails is dropped."""
    found = {}
    for source in list(self._sources):
      try:
        found.update(source())
      except Exception as error:
        # Training goes on without this measurement.
        self._sources.remove(source)
        self._logger.warn(f'Resources are no longer recorded: {error}')
    return found


def visible_cards() -> list[str]:
  """Return the GPUs in CUDA_VISIBLE_DEVICES up to the first invalid one."""
  names = re.split(r'\s*,\s*', os.environ.get('CUDA_VISIBLE_DEVICES', ''))
  return list(itertools.takewhile(re.compile(r'\d|GPU-|MIG-').match, names))


def sample_cards(cards: Sequence[str]) -> dict[str, float]:
  """Return load and memory of GPUs, from nvidia-smi.

  Args:
    cards: List of indices or names, as strings.

  Returns:
    Dict from name to number, without values that the driver does not report.

  Raises:
    OSError: If nvidia-smi cannot be started.
    subprocess.SubprocessError: If it fails or takes too long.
  """
  command = ['nvidia-smi', '--format=csv,noheader,nounits']
  command += [f'--query-gpu={_QUERY}', f'--id={",".join(cards)}']
  output = subprocess.check_output(
    command, stderr=subprocess.STDOUT, text=True, timeout=_QUERY_SECONDS
  )
  # Text in place of a number, such as `[N/A]`, becomes NaN.
  table = np.genfromtxt(output.splitlines(), delimiter=',', ndmin=2)
  load, total, used = table.sum(0)
  sample = {
    '/gpu/load': load / len(table),
    '/gpu/memory/total': total,
    '/gpu/memory/used': used,
  }
  return {name: x for name, x in sample.items() if np.isfinite(x)}


def define_processors() -> Callable[[], dict[str, float]]:
  """Return a function that reports CPU load since its last call, and memory.

  Raises:
    ImportError: If psutil is not installed.
  """
  import psutil

  own = psutil.Process()

  def sample():
    cores = psutil.cpu_percent(percpu=True)
    memory = psutil.virtual_memory()
    used = 0
    for process in [own, *own.children(recursive=True)]:
      try:
        used += process.memory_info().rss
      except psutil.Error:
        pass  # It has ended meanwhile.
    return {
      **{f'/cpu/per/{i}': load for i, load in enumerate(cores)},
      '/cpu/all/total': sum(cores) / len(cores),
      '/cpu/memory/total': memory.total / _MEGABYTE,
      '/cpu/memory/used': memory.used / _MEGABYTE,
      '/cpu/memory/mem': used / _MEGABYTE,
    }

  return sample
