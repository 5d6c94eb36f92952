"""The machine and the versions beside every result, and programs on it."""

import contextlib
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

from agents.run import errors

_PACKAGES = (
  'tensorflow numpy gymnasium gym pybullet gymnasium-robotics mujoco '
  'dm-control mpi4py'
)


def describe() -> dict[str, str]:
  """Return the processor, the versions of what is installed, and the commit."""
  versions = [f'Python {platform.python_version()}']
  for package in _PACKAGES.split():
    with contextlib.suppress(metadata.PackageNotFoundError):
      versions.append(f'{package} {metadata.version(package)}')
  return {
    'processor': describe_processor(),
    'versions': ', '.join(versions),
    'commit': _read_commit(),
  }


def describe_processor() -> str:
  """Return the processor and the number of its cores, in one line."""
  model = platform.processor() or platform.machine()
  if os.path.exists('/proc/cpuinfo'):
    with open('/proc/cpuinfo') as file_:
      text = file_.read()
    found = re.search(r'model name\s*: (.*)', text)
    avx = 'AVX-512' if 'avx512f' in text else 'no AVX-512'
    model = f'{found[1] if found else model}, {avx}'
  return f'{model}, {os.cpu_count()} cores'


def resolve(command: Sequence[str]) -> list[str]:
  """Return a command with the Python and the mpirun of this environment.

  Raises:
    UsageError: If it needs an mpirun and there is none.
  """
  beside = os.path.join(os.path.dirname(sys.executable), 'mpirun')
  mpirun = shutil.which(beside) or shutil.which('mpirun')
  if 'mpirun' in command and not mpirun:
    raise errors.UsageError(
      "This needs mpirun, which is not installed: pip install '.[mpi]'."
    )
  known = {'python': sys.executable, 'mpirun': str(mpirun)}
  return [known.get(x, x) for x in command]


def environ(**more: str) -> dict[str, str]:
  """Return the environment variables of a program, which may use MPI."""
  # Open MPI refuses root, but containers often have no other user.
  root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
  return {**os.environ, **root, **more}


@functools.cache
def _read_commit():
  """Return the commit of this code, `unknown` outside of a repository."""
  folder = os.path.dirname(os.path.abspath(__file__))
  command = ['git', '-C', folder, 'describe', '--always', '--dirty']
  try:
    return subprocess.check_output(command, text=True).strip()
  except (OSError, subprocess.CalledProcessError):
    return 'unknown'
