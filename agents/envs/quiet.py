"""Silence the output of old libraries."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from agents.run import streams

# What pygame prints when it is imported, and the packages that it imports.
os.environ.setdefault('PYGAME_HIDE_SUPPORT_PROMPT', '1')
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
# `adapters` tries whether an environment renders.
warnings.filterwarnings('ignore', message='.*not in the possible render_modes')


@contextlib.contextmanager
def quietly() -> Iterator[None]:
  """Silence old libraries and undo their changes to the module search path.

  gym advertises its successor, and PyBullet prints its location. PyBullet also
  puts itself first on Python's search path, where it has another package named
  `agents` that would replace ours in new processes.

  Yields:
    Nothing.
  """
  path = list(sys.path)
  if 'pybullet_envs' in sys.modules:
    # Its modules import each other without naming the package.
    sys.path.extend(sys.modules['pybullet_envs'].__path__)
  with (
    streams.silence(),
    warnings.catch_warnings(),
    streams.hold_back(1, 2),
  ):
    warnings.simplefilter('ignore')
    try:
      yield
    finally:
      sys.path[:] = path
