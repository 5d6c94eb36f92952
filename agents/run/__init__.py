"""What every run shares: log directories, settings, signals and logs."""

import os
import re
import signal
import sys

_NAMES = r'(planet|ppo|her|agents)-[a-z]'
_MODULES = r'(agents|planet|baselines_her|scripts)\.'


def end_silently() -> None:
  """Let Ctrl-C end a program of this project while its imports still run.

  This is not an error, and some libraries would turn it into one.
  `agents.run.entry` takes over once the imports are done.
  """
  words = sys.orig_argv
  module = words[words.index('-m') + 1 :] if '-m' in words else []
  name = os.path.basename(words[1]) if words[1:] else ''
  ours = re.match(_NAMES, name) or re.match(_MODULES, ' '.join(module))
  # A launcher may have told the program to ignore it.
  if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def open_streams() -> None:
  """Open the standard streams that whoever started this process has closed.

  Otherwise their numbers would go to other files, into which everything that
  is printed would be written.
  """
  for number, name in enumerate(('stdin', 'stdout', 'stderr')):
    try:
      os.fstat(number)
    except OSError:
      found = os.open(os.devnull, os.O_RDWR)
      if found != number:
        os.dup2(found, number)
        os.close(found)
      os.set_inheritable(number, True)
    if getattr(sys, name) is None:
      mode = 'w' if number else 'r'
      setattr(sys, name, open(number, mode, closefd=False))
