"""Train, resume or play an agent; the program of the pipeline."""

import contextlib
import sys
from collections.abc import Sequence

from agents.pipeline.session import Session
from agents.run import entry


def main(argv: Sequence[str] | None = None) -> None:
  """Run a session according to the command line.

  Args:
    argv: List of arguments; those of the process by default.

  Raises:
    UsageError: If an argument is not valid.
    SessionFinished: If the training to resume is finished.
  """
  session = Session(argv)
  try:
    runner = session.runner
    with contextlib.ExitStack() as stack:
      try:
        stack.enter_context(session.tf_session())
        runner.start(session)
      except BaseException:
        session.discard()
        raise
      if session.args.play:
        runner.enjoy()
      elif session.args.custom:
        runner.custom()
      elif not session.args.create_session_only:
        runner.train()
  finally:
    session.finalize()


def entrypoint(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code, 3 for a finished session."""
  return entry.run(lambda: main(argv))


if __name__ == '__main__':
  sys.exit(entrypoint())
