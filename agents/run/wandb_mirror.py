"""Copy scalars of a run to Weights & Biases."""

import logging
import os
import re
import tempfile
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from agents.run import errors, files

_logger = logging.getLogger(__name__)
_STEP = 'step'
_ID = 'run-id.txt'
_SETTINGS = {
  'silent': True,
  'console': 'off',
  # Seconds at the end of a run for a server that does not answer; from version
  # 0.27 on.
  'finish_timeout': 60.0,
  'finish_timeout_raises': True,
}


class WandbMirror:
  """Send scalars to a Weights & Biases run, see `MetricsWriter`.

  A continued run continues there, too. With WANDB_MODE=offline, nothing leaves
  the machine until `wandb sync`.

  Args:
    project: Name of the project, see `check`.
    folder: Log directory, where wandb keeps its files in `wandb`; None for a
      temporary one.
    settings: Plain data about the run to show next to the curves.
    tell: Function that prints a line for the user.

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
        settings=wandb.Settings(**_known(_SETTINGS, wandb.Settings)),
      )
    except (wandb.Error, OSError) as error:
      raise errors.UsageError(
        f'Weights & Biases cannot start: {_say(error)}. Set '
        'WANDB_MODE=offline to send nothing for now, or omit --wandb.'
      ) from None
    self._run.define_metric(_STEP)
    self._run.define_metric('*', step_metric=_STEP)
    place = self._run.url or f'offline, in {folder}/wandb'
    tell(f'Weights & Biases: {place}.')

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Send a dict from name to number; after a failure, nothing more.

    Args:
      step: Number of environment steps, or another x value of the scalars.
      scalars: Dict from name to number.
    """
    if not self._run:
      return
    try:
      self._run.log({**scalars, _STEP: step})
    except Exception as error:  # Its service ended, or the disk is full.
      self._run = None
      _warn(error)

  def close(self) -> None:
    """Send the remaining scalars and end the run; safe to call twice."""
    run, self._run = self._run, None
    try:
      if run:
        run.finish()
    except Exception as error:
      _warn(error)


def check(project: str | None, folder: str | None = '.') -> None:
  """Check the value of the flag `--wandb`.

  Args:
    project: Name of the project, or None if the flag is not given.
    folder: Log directory, None if the user has to give one and has not.

  Raises:
    UsageError: If the name is not valid, or wandb is not installed.
  """
  if project is None:
    return
  if not re.fullmatch(r'[^/\\#?%:\r\n]{1,128}', project.strip()):
    raise errors.UsageError(
      f'Flag --wandb is {project!r}; give a project name without any of '
      '/ \\ # ? % :.'
    )
  if not folder:
    raise errors.UsageError(
      'Flag --wandb needs a log directory for its files; add --logdir.'
    )
  errors.check_installed(
    'wandb', 'Flag --wandb', errors.how_to_install('wandb'), 'omit the flag'
  )


def make_mirrors(
  project: str | None,
  folder: str | None,
  settings: Mapping[str, Any] | None = None,
) -> list[WandbMirror]:
  """Return the mirrors that the flag `--wandb` asks for, none without it.

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


def _warn(error):
  """Say that the run goes on without the mirror."""
  _logger.warning(
    'Weights & Biases failed: %s. Its curves end here; the files of the run '
    'are complete, and the next start of the run sends again.',
    _say(error),
  )


def _say(error):
  """Message of an error in one line without its full stop."""
  return ' '.join(str(error).split()).rstrip('.') or type(error).__name__


def _known(settings, kind):
  """Leave out what an earlier version of wandb would refuse."""
  return {k: v for k, v in settings.items() if k in kind.model_fields}


def _find_id(path):
  """Name of the run at Weights & Biases, the same each time."""
  if not os.path.exists(path):
    with files.atomic_write(path) as file_:
      file_.write(uuid.uuid4().hex[:8])
  with open(path, encoding='utf-8') as file_:
    return file_.read().strip()
