"""What a run takes of the machine: processors, memory, graphics cards."""

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from agents.pipeline import logs

_MEGABYTE = 2**20
_QUERY = 'utilization.gpu,memory.total,memory.used'
_QUERY_SECONDS = 20.0


class ResourceThread:
  """Sample resources in the background and write their statistics.

  Names are `/cpu/per/<core>` and `/cpu/all/total` (percent), `/cpu/memory/`
  `total`, `used` and `mem` (megabytes; `mem` is this process with all that it
  started), `/gpu/load` (percent, mean over cards), `/gpu/memory/` `total` and
  `used` (megabytes of all cards).

  Processors need the package psutil; without it there is one warning. Cards
  are asked through nvidia-smi, those of CUDA_VISIBLE_DEVICES only, and none if
  that is not set.

  Args:
    path: File of JSON lines, readable with `logs.read`; nothing is measured
      if None.
    cpu: Whether to sample processors and memory.
    gpu: Whether to sample graphics cards.
    period: Seconds between two samples.
    window: Number of samples that make a line.
    logger: Where warnings go; the terminal by default.
    meta: Function that returns a dict of where the run is, such as
      `lambda: monitor.meta`; seconds since the start by default.
  """

  def __init__(
    self,
    path: str | None,
    cpu: bool = True,
    gpu: bool = True,
    period: float = 2.0,
    window: int = 10,
    logger: Any = None,
    meta: Callable[[], dict] | None = None,
  ) -> None:
    self._path = path
    self._period = period
    self._window = window
    self._logger = logger or logs.Logger()
    self._meta = meta
    self._sources = []
    self._stopped = threading.Event()
    self._thread: threading.Thread | None = None
    if path and cpu:
      self._add_processors()
    if path and gpu:
      cards = visible_cards()
      self._sources += [lambda: sample_cards(cards)] if cards else []

  def start(self) -> None:
    """Begin to sample, if there is anything to sample."""
    if self._sources and self._thread is None:
      self._thread = threading.Thread(target=self._loop, daemon=True)
      self._thread.start()

  def stop(self) -> None:
    """Write what was sampled so far and end the thread."""
    self._stopped.set()
    if self._thread:
      self._thread.join()
      self._thread = None

  def _add_processors(self):
    try:
      self._sources.append(_Processors())
    except ImportError:
      self._logger.warn(
        'The use of processors and memory is not recorded: pip install '
        'psutil, or pass --no-monitor-cpu.'
      )

  def _loop(self):
    monitor = logs.Monitor(self._path)
    count = 0
    self._sample()  # Here psutil begins its first interval, in this thread.
    while not self._stopped.wait(self._period):
      for name, value in self._sample().items():
        monitor(name, value)
      count += 1
      if count % self._window == 0:
        self._pack(monitor)
    self._pack(monitor)

  def _sample(self):
    """Dict from name to number; a source that fails is left out from then."""
    found = {}
    for source in list(self._sources):
      try:
        found.update(source())
      except Exception as error:
        # The run is worth more than its measurement.
        self._sources.remove(source)
        self._logger.warn(f'Resources are no longer recorded: {error}')
    return found

  def _pack(self, monitor):
    for key, value in (self._meta() if self._meta else {}).items():
      monitor.set_meta(key, value)
    monitor.pack()


def visible_cards() -> list[str]:
  """Return what CUDA_VISIBLE_DEVICES lists up to the first invalid one."""
  cards = []
  for name in os.environ.get('CUDA_VISIBLE_DEVICES', '').split(','):
    name = name.strip()
    if not name.isdigit() and not name.startswith(('GPU-', 'MIG-')):
      break
    cards.append(name)
  return cards


def sample_cards(cards: Sequence[str]) -> dict[str, float]:
  """Load and memory of graphics cards, by nvidia-smi.

  Args:
    cards: List of indices or names, as strings.

  Returns:
    Dict from name to number; what the driver does not tell is left out.

  Raises:
    OSError: If nvidia-smi cannot be started.
    subprocess.SubprocessError: If it fails or takes too long.
  """
  command = ['nvidia-smi', '--format=csv,noheader,nounits']
  command += [f'--query-gpu={_QUERY}', f'--id={",".join(cards)}']
  output = subprocess.run(
    command,
    check=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=_QUERY_SECONDS,
  ).stdout
  rows = [line.split(',') for line in output.splitlines() if line.strip()]
  loads, totals, used = ([_number(x) for x in column] for column in zip(*rows))
  sample = {
    '/gpu/load': None if None in loads else sum(loads) / len(loads),
    '/gpu/memory/total': None if None in totals else sum(totals),
    '/gpu/memory/used': None if None in used else sum(used),
  }
  return {name: value for name, value in sample.items() if value is not None}


class _Processors:
  """Load since the previous call, and memory."""

  def __init__(self):
    import psutil

    self._psutil = psutil
    self._process = psutil.Process()

  def __call__(self):
    cores = self._psutil.cpu_percent(percpu=True)
    memory = self._psutil.virtual_memory()
    sample = {f'/cpu/per/{i}': load for i, load in enumerate(cores)}
    sample['/cpu/all/total'] = sum(cores) / len(cores)
    sample['/cpu/memory/total'] = memory.total / _MEGABYTE
    sample['/cpu/memory/used'] = memory.used / _MEGABYTE
    sample['/cpu/memory/mem'] = self._own_memory() / _MEGABYTE
    return sample

  def _own_memory(self):
    """Bytes of this process and all below it, shared pages counted twice."""
    total = 0
    for process in [self._process, *self._process.children(recursive=True)]:
      try:
        total += process.memory_info().rss
      except self._psutil.Error:
        pass  # It has ended meanwhile.
    return total


def _number(text):
  """Number, or None where the driver says that it does not know."""
  try:
    return float(text)
  except ValueError:
    return None
