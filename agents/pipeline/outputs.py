"""What a run tells while it goes: messages, statistics, times, scalars."""

import contextlib
import os
import types
from collections.abc import Mapping
from typing import Any

from agents.pipeline import folders, logs, profiler, resources, writers
from agents.run import wandb_mirror


class Outputs:
  """Opens all files and servers that a session writes to.

  Args:
    path: Folder of the session, None to leave nothing on disk.
    args: Namespace of the flags of the session.
    first: Whether this is the first rank, which alone says something.
    settings: Plain data about the run.

  Attributes:
    logger: `Logger`.
    monitor: `Monitor`, whose means go to the writer.
    profiler: `Profiler`.
    writer: `Writer`, with `add_scalar`.
  """

  def __init__(
    self,
    path: str | None,
    args: types.SimpleNamespace,
    first: bool,
    settings: Mapping[str, Any],
  ) -> None:
    self._path = path
    find = self._find
    self.logger = logs.Logger(
      find('report.log'), args.log_level if first else 9
    )
    self.monitor = logs.Monitor(find('varlog.json'))
    self.profiler = profiler.Profiler(find('prolog.json'), args.profiler_level)
    self.writer = writers.Writer(
      find('tensorboard'),
      find('scalars.csv'),
      self._make_mirrors(args, settings) if first else [],
    )
    self.monitor.listeners.append(self._write_statistics)
    with contextlib.ExitStack() as stack:
      stack.callback(self.writer.close)
      if path:
        self._begin(path, args, stack)
      self._open = stack.pop_all()

  def close(self) -> None:
    """Close everything, also if a part of it fails.

    The log tells about the failure, which is raised at the end.
    """
    try:
      self._open.close()
    except BaseException as error:  # A second Ctrl-C, too.
      with contextlib.suppress(OSError):
        self.logger.error(f'While closing the session: {error!r}')
      raise

  def _begin(self, path, args, stack):
    """Start what runs beside, and say where."""
    if args.tensorboard:
      from agents.pipeline import tensorboard

      address = tensorboard.start(self._find('tensorboard'))
      self.logger.info(f'TensorBoard at {address}.')
    if args.repeal:
      folders.write_json(self._find('repeal.json'), args.repeal)
    thread = resources.ResourceThread(
      self._find('monlog.json'),
      not args.no_monitor_cpu,
      not args.no_monitor_gpu,
      logger=self.logger,
      meta=lambda: self.monitor.meta,
    )
    thread.start()
    stack.callback(thread.stop)
    self.logger.info(f'Session {path}.')

  def _make_mirrors(self, args, settings):
    mirrors: list[Any] = wandb_mirror.make_mirrors(
      args.wandb, self._path, settings, self.logger.info
    )
    if args.visdom:
      from agents.pipeline import visdom_mirror

      name = os.path.basename(self._path or 'dry_run')
      log_path = self._find('visdom.log')
      mirrors.append(
        visdom_mirror.VisdomMirror(
          args.visdom_port, name, log_path, self.logger
        )
      )
    return mirrors

  def _write_statistics(self, name, statistics, meta):
    """Draw the means of what the monitor has gathered."""
    mean = statistics['sum'] / statistics['num']
    step = meta.get('frame', meta.get('epoch', 0))
    self.writer.add_scalar(name.strip('/'), mean, step)

  def _find(self, name) -> Any:
    return self._path and os.path.join(self._path, name)


def check_installed(args: types.SimpleNamespace) -> None:
  """Refuse early what needs packages that are not installed.

  Args:
    args: Namespace of the flags of the session.

  Raises:
    UsageError: If one is missing.
  """
  wandb_mirror.check(args.wandb)
  if args.visdom:
    from agents.pipeline import visdom_mirror

    visdom_mirror.find_pages()
  if args.tensorboard:
    from agents.pipeline import tensorboard

    tensorboard.check_installed()
