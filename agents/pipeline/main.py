"""Train, continue or show an agent in a session; the program of a pipeline."""

import contextlib
import sys
from collections.abc import Sequence

from agents.pipeline import folders
from agents.pipeline.session import Session
from agents.run import entry, mpi


def main(argv: Sequence[str] | None = None) -> None:
  """Run a session as the command line says.

  Args:
    argv: List of arguments; those of the process by default.

  Raises:
    UsageError: If something is wrong with the arguments.
    SessionFinished: If the training to continue is finished.
  """
  session = Session(argv)
  try:
    with contextlib.ExitStack() as stack:
      runner = _start(session, stack)
      if session.is_playing:
        runner.enjoy()
      elif session.is_custom:
        runner.custom()
      elif not session.is_session_only:
        runner.train()
  finally:
    session.finalize()


def _start(session, stack):
  """Runner that has built everything; without it, no session is left."""
  try:
    stack.enter_context(session.graph.as_default())
    stack.enter_context(session.tf_session().as_default())
    runner = session.make_runner()
    runner.start(session)
    session.mark_as_started()
    return runner
  except BaseException:
    session.discard()
    raise


def entrypoint(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code, 3 for finished sessions."""
  mpi.abort_on_errors()
  codes = []

  def work():
    try:
      main(argv)
    except folders.SessionFinished as error:
      print(f'Error: {error}', file=sys.stderr)
      codes.append(3)

  return entry.run(work) or sum(codes)


if __name__ == '__main__':
  sys.exit(entrypoint())
