"""How programs begin and end: search path, exit codes, and last words."""

import os
import select
import sys
from collections.abc import Callable

from agents.run import errors, stopping

_STDOUT = 1  # file descriptor


def run(function: Callable[[], object]) -> int:
  """Call the main function of a program and turn its fate into an exit code.

  Modules of the user may lie in the current folder, also for programs that
  pip has installed. It comes last, so that it hides nothing.

  Args:
    function: Function without arguments.

  Returns:
    0 after success and when the user asked to stop; 2 for bad input, and 1
    when an environment fails or its process was killed, whose sentences are
    printed, or when nobody reads the output any more, as after `| head`.
    Other errors are raised.
  """
  if '' not in sys.path:
    sys.path.append('')
  try:
    try:
      function()
    finally:
      # Not only at the exit of Python, where an error would be a traceback.
      # Also after `--help`, which argparse ends with SystemExit.
      print(end='', flush=True)
    return 0
  except stopping.StopRequested:
    print('Stopped. Repeat the command to continue.', file=sys.stderr)
    return 0
  except errors.UsageError as error:
    print(f'Error: {error}', file=sys.stderr)
    return 2
  except errors.WorkerDeath as error:
    print(f'Error: {error} Repeat the command to continue.', file=sys.stderr)
    return 1
  except errors.EnvError as error:
    print(f'Error: {error}\n{error.details}'.strip(), file=sys.stderr)
    return 1
  except BrokenPipeError:
    if not _drop_unread_output():
      raise
    return 1


def _drop_unread_output():
  """Return whether the reader of the standard output has gone.

  If so, leave nothing there that would fail again when Python exits.
  """
  poll = select.poll()
  poll.register(_STDOUT, 0)
  gone = any(event & select.POLLERR for _, event in poll.poll(0))
  if gone:
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
  return gone
