"""Describe the machine and versions of a result, and run programs."""

import contextlib
import functools
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

from agents.run import mpi, stopping

# Root of the checkout.
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGES = (
  'tensorflow numpy gymnasium gym pybullet gymnasium-robotics mujoco '
  'dm-control mpi4py'
)


def describe() -> dict[str, str]:
  """Return the processor, the versions of installed packages and the commit."""
  versions = [f'Python {platform.python_version()}']
  for package in _PACKAGES.split():
    with contextlib.suppress(metadata.PackageNotFoundError):
      versions.append(f'{package} {metadata.version(package)}')
  return {
    'processor': _describe_processor(),
    'versions': ', '.join(versions),
    'commit': _read_commit(),
  }


def _describe_processor():
  """Return the processor and its number of cores in one line."""
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
    UsageError: If the command needs mpirun, which is not installed.
  """
  known = {'python': sys.executable}
  if 'mpirun' in command:
    known['mpirun'] = mpi.find_mpirun('This command')
  return [known.get(x, x) for x in command]


def environ(**more: str) -> dict[str, str]:
  """Return environment variables for programs, with MPI allowed for root."""
  # Open MPI rejects root, often the only user in containers.
  root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
  return {**os.environ, **root, **more}


def end_with_parent() -> None:
  """Let a new process, of which it is the `preexec_fn`, end with this one."""
  stopping.follow_parent(signal.SIGTERM)


@functools.cache
def _read_commit():
  """Return the commit of this code, or `unknown` outside of a repository."""
  command = ['git', '-C', ROOT, 'describe', '--always', '--dirty']
  try:
    return subprocess.check_output(command, text=True).strip()
  except (OSError, subprocess.CalledProcessError):
    return 'unknown'
