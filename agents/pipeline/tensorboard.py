"""A TensorBoard server beside a run."""

import logging
from importlib import util

from agents.run import errors


def check_installed() -> None:
  """Raise a `UsageError` if TensorBoard is missing."""
  if util.find_spec('tensorboard') is None:
    raise errors.UsageError(
      'Flag --tensorboard needs a package that is not installed: pip install '
      "'reference-agents[viz]', or omit the flag."
    )


def start(folder: str) -> str:
  """Start a server in a thread, which ends with this process.

  It takes the usual port, or one of the next if that is taken.

  Args:
    folder: Folder of event files.

  Returns:
    Address of the server.

  Raises:
    UsageError: If it does not start.
  """
  from tensorboard import program

  # It writes a line for every request, and warns that it lacks TensorFlow.
  logging.getLogger('werkzeug').setLevel(logging.ERROR)
  server = program.TensorBoard()
  server.configure(argv=['tensorboard', '--logdir', folder])
  try:
    return server.launch().rstrip('/')
  except program.TensorBoardServerException as error:
    raise errors.UsageError(
      f'TensorBoard does not start: {error.msg}; omit --tensorboard.'
    ) from None
