"""Servers and ports that one environment has for itself.

Claims are locked files in a folder for temporary files, so they end with the
process that has them. They bind our own processes on this machine only.
"""

import getpass
import os
import re
import tempfile
from typing import Any, NamedTuple

from agents.run import errors, files
from planet.envs.carla.server import connect


class Claim(NamedTuple):
  """Right to use a server or a port, until its lock is released."""

  host: str
  port: int
  lock: Any

  @property
  def address(self) -> str:
    return f'{self.host}:{self.port}'


def try_server(host: str, port: int) -> Claim | None:
  """Claim a server, unless another environment of this user has it."""
  folder = os.path.join(
    tempfile.gettempdir(), f'reference_agents_carla_{getpass.getuser()}'
  )
  os.makedirs(folder, exist_ok=True)
  # The same machine has several names.
  name = '127.0.0.1' if host == 'localhost' else re.sub(r'[^\w.-]', '_', host)
  lock = files.try_lock(os.path.join(folder, f'{name}_{port}.use'))
  return Claim(host, port, lock) if lock else None


def claim_ports(first: int, count: int, step: int) -> Claim:
  """Claim ports of this machine that nothing listens on.

  Args:
    first: Port to try first.
    count: Number of ports from the claimed one on that have to be free.
    step: Distance of the ports to try.

  Raises:
    UsageError: If there are none.
  """
  host = '127.0.0.1'
  for port in range(first, 65536 - count, step):
    claim = try_server(host, port)
    if claim:
      ports = range(port, port + count)
      if all(connect.why_unreachable(host, x, 0.2) for x in ports):
        return claim
      claim.lock.release()
  raise errors.UsageError(
    f'There are no free ports from {first} on for a CARLA server.'
  )
