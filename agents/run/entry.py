"""How programs begin and end: search path, exit codes, and last words."""

import sys
from collections.abc import Callable

from agents.run import errors
from agents.run import stopping


def run(function: Callable[[], object]) -> int:
  """Call the main function of a program and turn its fate into an exit code.

  Modules of the user may lie in the current folder, also for programs that
  pip has installed. It comes last, so that it hides nothing.

  Args:
    function: Function without arguments.

  Returns:
    0 after success and when the user asked to stop; 2 for bad input, and 1
    when an environment fails or its process was killed, whose sentences are
    printed. Other errors are raised.
  """
  if '' not in sys.path:
    sys.path.append('')
  try:
    function()
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
