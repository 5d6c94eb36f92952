"""Processor and versions, which stand beside every result."""

import functools
import os
import platform
import subprocess
from importlib import metadata

_PACKAGES = {
  'ppo': ('tensorflow', 'numpy', 'gym', 'pybullet'),
  'her': ('tensorflow', 'numpy', 'gymnasium-robotics', 'mujoco', 'mpi4py'),
  'planet': ('tensorflow', 'numpy', 'dm-control', 'mujoco'),
  'pipeline': ('tensorflow', 'numpy', 'gymnasium', 'pybullet', 'mujoco'),
}


def describe(system: str) -> dict[str, str]:
  """Return the processor, the versions of what a system uses, and of this code.

  Args:
    system: `ppo`, `her`, `planet` or `pipeline`.
  """
  versions = [f'Python {platform.python_version()}']
  for package in _PACKAGES[system]:
    try:
      versions.append(f'{package} {metadata.version(package)}')
    except metadata.PackageNotFoundError:
      continue
  return {
    'processor': describe_processor(),
    'versions': ', '.join(versions),
    'commit': _read_commit(),
  }


def describe_processor() -> str:
  """Return the processor and the number of its cores, in one line."""
  model = platform.processor() or platform.machine()
  try:
    with open('/proc/cpuinfo') as file_:
      lines = file_.read().splitlines()
    names = [x.split(':')[1].strip() for x in lines if 'model name' in x]
    flags = next((x for x in lines if x.startswith('flags')), '')
    model = f'{names[0]}, {"" if "avx512f" in flags else "no "}AVX-512'
  except (OSError, IndexError):
    pass
  return f'{model}, {os.cpu_count()} cores'


@functools.cache
def _read_commit():
  """Return the commit of this code, `unknown` outside of a repository."""
  folder = os.path.dirname(__file__)
  command = ['git', '-C', folder, 'describe', '--always', '--dirty']
  try:
    result = subprocess.run(command, capture_output=True, text=True)
  except OSError:
    return 'unknown'
  return result.stdout.strip() or 'unknown'
