"""Servers and ports that one environment has for itself.

Claims are locked files in a folder for temporary files, so they end with the
process that holds them. They bind our own processes on this machine only.
"""

import getpass
import os
import re
import tempfile
import time
from collections.abc import Iterable
from typing import Any

from agents.run import errors, files
from planet.envs.carla.server import connect

_PAUSE = 0.1


class Claim:
  """Right to use a server or a port, until it is released.

  Args:
    host: Address of the machine.
    port: Number of the port.
    lock: Held lock.
  """

  def __init__(self, host: str, port: int, lock: Any):
    self.host, self.port = host, port
    self._lock = lock

  def release(self) -> None:
    """Let others have it; safe to call twice."""
    self._lock.release()

  def is_wanted(self) -> bool:
    """Tell whether somebody waits for it."""
    lock = _try_lock(self.host, self.port, 'queue')
    if lock:
      lock.release()
    return not lock


def claim_server(addresses: Iterable[tuple[str, int]], timeout: float) -> Claim:
  """Wait for a server that nobody else of us uses.

  Args:
    addresses: Hosts and ports of servers; those that answer come first.
    timeout: Seconds to wait.

  Raises:
    UsageError: If all of them are in use for so long.
  """
  addresses = sorted(addresses, key=lambda x: bool(connect.find_obstacle(*x)))
  limit = time.monotonic() + timeout
  queued = None
  try:
    while True:
      for address in addresses:
        claim = try_server(*address)
        if claim:
          return claim
      for address in addresses:
        queued = queued or _try_lock(*address, 'queue')
      if time.monotonic() > limit:
        raise errors.UsageError(
          'Other environments have been using all CARLA servers '
          f'({connect.join_addresses(addresses)}) for {timeout:g} s; give more '
          'by carla_servers: [host:port, ...], or set '
          f'{connect.SERVER_VARIABLE} so that each environment starts its own.'
        )
      time.sleep(_PAUSE)
  finally:
    if queued:
      queued.release()


def try_server(host: str, port: int) -> Claim | None:
  """Claim a server, unless somebody else of us uses it."""
  lock = _try_lock(host, port, 'use')
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
      if all(connect.find_obstacle(host, port + x, 0.2) for x in range(count)):
        return claim
      claim.release()
  raise errors.UsageError(
    f'There are no free ports from {first} on for a CARLA server.'
  )


def _try_lock(host, port, purpose):
  folder = os.path.join(
    tempfile.gettempdir(), f'reference_agents_carla_{getpass.getuser()}'
  )
  os.makedirs(folder, exist_ok=True)
  # The same machine has several names.
  host = '127.0.0.1' if host == 'localhost' else re.sub(r'[^\w.-]', '_', host)
  return files.try_lock(os.path.join(folder, f'{host}_{port}.{purpose}'))
