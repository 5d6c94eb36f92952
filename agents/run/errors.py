"""Errors that are the user's to mend."""

import difflib
import sys
from collections.abc import Iterable

_MOST_LISTED = 20


class UsageError(ValueError):
  """Bad input: one sentence says what was given, what is allowed, what to do.

  Programs print the sentence without a traceback and exit with code 2.
  """


class WorkerDeath(RuntimeError):
  """A process with environments has ended, without an error of its own.

  Somebody or the system has killed it; the sentence tells how. Programs print
  it without a traceback and exit with code 1.
  """


class EnvError(RuntimeError):
  """An environment does what it must not.

  Programs print the sentence and, if it has raised an error of its own, its
  traceback; they exit with code 1.

  Args:
    sentence: Which environment does what, and what to do about it.
    details: Traceback of the environment.
  """

  def __init__(self, sentence: str, details: str = ''):
    super().__init__(sentence)
    self.details = details


def how_to_install(extra: str) -> str:
  """Return the command that installs an extra, and what it leaves out."""
  command = f"pip install 'reference-agents[{extra}]'"
  missing = {'pybullet': (3, 12), 'dmc': (3, 13)}
  if sys.version_info < missing.get(extra, (4,)):
    return command
  return f'{command}, and what it leaves out: see docs/install.md'


def suggest(name: str, known: Iterable[str]) -> str:
  """Sentence that names the nearest known names, or lists some of them."""
  known = sorted(set(known))
  close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
  if close:
    return f'Did you mean {" or ".join(close)}?'
  if len(known) > _MOST_LISTED:
    listed = ', '.join(known[:: len(known) // _MOST_LISTED][:_MOST_LISTED])
    return f'There are {len(known)}, among them {listed}.'
  return f'Known are: {", ".join(known)}.'
