"""Errors that are the user's to mend."""

import difflib
import sys
from collections.abc import Iterable

_MOST_LISTED = 20


class UsageError(ValueError):
  """Bad input: one sentence says what was given, what is allowed, what to do.

  Programs print the sentence without a traceback and exit with `code`.
  """

  code = 2
  advice = ''
  details = ''


class Failure(RuntimeError):
  """The program cannot go on, through no mistake of its own.

  Programs print the sentence and the details, and exit with code 1.

  Args:
    sentence: What has failed, and what to do about it.
    details: Further lines, such as the traceback of an environment.

  Attributes:
    advice: What programs add to the sentence.
  """

  code = 1
  advice = ''

  def __init__(self, sentence: str, details: str = ''):
    super().__init__(sentence, details)
    self.details = details

  def __str__(self) -> str:
    return self.args[0]


class WorkerDeath(Failure):
  """A process with environments was killed; the sentence says how."""

  advice = ' Repeat the command to continue.'


class EnvError(Failure):
  """An environment does what it must not, or has raised an error."""


class NotFinite(Failure):
  """A training has left the numbers: its weights or scores are not finite."""


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
