"""What every run shares: log directories, settings, signals and logs."""

import os
import signal
import sys

# The console scripts of setup.py.
PROGRAMS = (
  *('planet-train', 'planet-evaluate', 'planet-plot', 'planet-fetch-events'),
  *('planet-create-video', 'planet-carla-smoke'),
  *('ppo-train', 'ppo-visualize', 'ppo-plot'),
  *('her-train', 'her-play', 'her-plot', 'her-record'),
  *('agents-session', 'agents-plot', 'agents-check-env'),
)
_PACKAGES = 'agents', 'planet', 'baselines_her', 'scripts'


def end_silently() -> None:
  """Let Ctrl-C end a program of this project while its imports still run.

  This is not an error, and some libraries would turn it into one.
  `agents.run.entry` takes over once the imports are done. Programs of the user
  keep their handling of Ctrl-C.
  """
  # A launcher may have told the program to ignore Ctrl-C.
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    if _is_own_program():
      signal.signal(signal.SIGINT, signal.SIG_DFL)


def _is_own_program():
  """Return whether this process runs one of `PROGRAMS` or `-m` of a module."""
  main = sys.modules['__main__']
  spec = getattr(main, '__spec__', None)
  if spec:
    module = spec.name
  elif sys.argv[:1] == ['-m']:
    # Python is still importing the packages of the module.
    module = sys.orig_argv[-len(sys.argv)]
  else:
    return os.path.basename(getattr(main, '__file__', None) or '') in PROGRAMS
  package = module.partition('.')[0]
  path = getattr(sys.modules.get(package), '__file__', None) or ''
  root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
  own = os.path.dirname(os.path.dirname(path)) == root
  return own and package in _PACKAGES and '.' in module


def open_streams() -> None:
  """Open the standard streams that were closed when this process started.

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
