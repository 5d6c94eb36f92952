"""Select how MuJoCo renders, before it is imported."""

import os
import subprocess
import sys

from agents.run import errors

_INSTALL_COMMAND = (
  'apt-get install -y libegl1 libgl1 libgl1-mesa-dri libgles2 libosmesa6'
)

# Spares child processes the attempt.
_RESULT = 'AGENTS_OPENGL_RENDERER'

VARIABLES = ('MUJOCO_GL', 'PYOPENGL_PLATFORM', _RESULT)

_SOFTWARE = ('llvmpipe', 'softpipe', 'swrast', 'software')

# What this process has asked for, None if it has not.
_selected: str | None = None

_PROBE = """
import mujoco
context = mujoco.GLContext(16, 16)
context.make_current()
from OpenGL import GL
print(GL.glGetString(GL.GL_RENDERER).decode())
"""


def select_backend() -> str:
  """Set MUJOCO_GL in this process and its children to a working backend.

  Keeps a value that the user has set, if it works.

  Returns:
    Name of the OpenGL renderer.

  Raises:
    UsageError: If OpenGL cannot render.
  """
  global _selected
  chosen = os.environ.get('MUJOCO_GL')
  tried, _, known = os.environ.get(_RESULT, '').partition(':')
  for backend in (chosen,) if chosen else ('egl', 'osmesa'):
    name = known if tried == backend else renderer(backend)
    if name:
      os.environ['MUJOCO_GL'] = backend
      # MuJoCo refuses another one, such as that of another program.
      os.environ['PYOPENGL_PLATFORM'] = backend
      os.environ[_RESULT] = f'{backend}:{name}'
      _selected = name
      return name
  if chosen:
    advice = (
      f'with MUJOCO_GL={chosen}; unset the variable to select EGL or OSMesa '
      'automatically.'
    )
  else:
    advice = (
      'here, neither through EGL nor through OSMesa. Install the drivers; on '
      f'Debian and Ubuntu: {_INSTALL_COMMAND}'
    )
  raise errors.UsageError(f'OpenGL cannot render {advice}')


def selected_renderer() -> str | None:
  """Return the name of the renderer if this process selected one, else None."""
  return _selected


def is_software(name: str) -> bool:
  """Return whether a renderer is software, which crashes with TensorFlow."""
  return any(word in name.lower() for word in _SOFTWARE)


def prepare(env: str) -> None:
  """Select a backend; refuse to render where that would end the process.

  Args:
    env: Name of an environment that renders with OpenGL.

  Raises:
    UsageError: If OpenGL is software and TensorFlow is imported, or OpenGL
      cannot render.
  """
  if is_software(select_backend()) and 'tensorflow' in sys.modules:
    raise errors.UsageError(
      f'{env} renders with OpenGL in software, which crashes in a process with '
      'TensorFlow; create it in a process of its own.'
    )


def is_loaded_in_software() -> bool:
  """Return whether this process has loaded Mesa's renderer; only on Linux."""
  try:
    with open('/proc/self/maps') as file_:
      return 'libLLVM' in file_.read()
  except OSError:
    return False


def renderer(backend: str) -> str | None:
  """Return the OpenGL renderer of a backend, None if it fails.

  Tries it in a separate process, because a failure may be a crash.
  """
  environ = {**os.environ, 'MUJOCO_GL': backend, 'PYOPENGL_PLATFORM': backend}
  try:
    result = subprocess.run(
      [sys.executable, '-c', _PROBE],
      env=environ,
      timeout=60,
      capture_output=True,
      text=True,
    )
  except (OSError, subprocess.TimeoutExpired):
    return None
  return result.stdout.strip() if result.returncode == 0 else None
