"""Scalars of a run, sent to Weights & Biases."""

import logging
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Mapping
from importlib import util
from typing import Any

from agents.run import errors, files

_logger = logging.getLogger(__name__)
_STEP = 'step'
_ID = 'run-id.txt'


class WandbMirror:
  """Sends scalars to a run of Weights & Biases, see `MetricsWriter`.

  A run that is continued goes on there, too. With WANDB_MODE=offline, nothing
  leaves the machine until `wandb sync`.

  Args:
    project: Name of the project, see `check`.
    folder: Folder of the run, where wandb keeps its files in `wandb`; None
      for a temporary one.
    settings: Plain data about the run to show beside the curves.
    tell: Function of a line for the user.

  Raises:
    UsageError: If wandb cannot start; says why.
  """

  def __init__(
    self,
    project: str,
    folder: str | None,
    settings: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] = _logger.info,
  ):
    import wandb

    folder = os.path.abspath(folder or tempfile.mkdtemp())
    parent, name = os.path.split(folder)
    try:
      self._run = wandb.init(
        project=project,
        name=f'{os.path.basename(parent)}/{name}',
        id=_find_id(os.path.join(folder, 'wandb', _ID)),
        resume='allow',
        dir=folder,
        config=dict(settings or {}),
        # The run before in the same process is finished.
        reinit='finish_previous',
        settings=wandb.Settings(silent=True, console='off'),
      )
    except wandb.Error as error:
      raise errors.UsageError(
        f'Weights & Biases cannot start: {error} Set WANDB_MODE=offline to '
        'send nothing for now, or omit --wandb.'
      ) from None
    self._run.define_metric(_STEP)
    self._run.define_metric('*', step_metric=_STEP)
    place = self._run.url or f'offline, in {folder}/wandb'
    tell(f'Weights & Biases: {place}.')

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Send a dict from name to number.

    Args:
      step: Number of environment steps, or what else the scalars count.
      scalars: Dict from name to number.
    """
    self._run.log({**scalars, _STEP: step})

  def close(self) -> None:
    """Send what is left."""
    self._run.finish()


def check(project: str | None, folder: str | None = '.') -> None:
  """Refuse a flag `--wandb` that cannot work.

  Args:
    project: Name of the project, or None if the flag is not given.
    folder: Folder of the run, if the user has to give one.

  Raises:
    UsageError: If the name is empty, or wandb is not installed.
  """
  if project is None:
    return
  if not re.fullmatch(r'[^/\\#?%:\r\n]{1,128}', project.strip()):
    raise errors.UsageError(
      f'Flag --wandb is {project!r}; give the name of a project, without any '
      'of / \\ # ? % :.'
    )
  if not folder:
    raise errors.UsageError(
      'Flag --wandb sends what is in the folder of the run; give --logdir, too.'
    )
  spec = util.find_spec('wandb')
  # A folder that wandb has left elsewhere looks like a package, too.
  if not spec or not spec.origin:
    raise errors.UsageError(
      'Flag --wandb needs a package that is not installed: pip install '
      "'reference-agents[wandb]', or omit the flag."
    )


def make_mirrors(
  project: str | None,
  folder: str | None,
  settings: Mapping[str, Any] | None = None,
) -> list[WandbMirror]:
  """Return the mirror that a flag `--wandb` asks for, if it is given.

  Args:
    project: See `check`.
    folder: See `WandbMirror`.
    settings: See `WandbMirror`.

  Raises:
    UsageError: See `WandbMirror`.
  """
  if project is None:
    return []
  return [WandbMirror(project, folder, settings)]


def _find_id(path):
  """Name of the run at Weights & Biases, the same each time."""
  if not os.path.exists(path):
    with files.atomic_write(path) as file_:
      file_.write(uuid.uuid4().hex[:8])
  with open(path, encoding='utf-8') as file_:
    return file_.read().strip()
