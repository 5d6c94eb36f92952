"""CARLA servers: which there are, who uses them, and their version.

Claims are locked files in a folder for temporary files, so they end with the
process that has them. They bind our own processes on this machine only.
"""

import getpass
import os
import re
import socket
import tempfile
import typing
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents.run import errors, files
from planet.envs.carla import roads

if typing.TYPE_CHECKING:
  import carla

SERVER_VARIABLE = 'CARLA_SERVER'


def why_unreachable(host: str, port: int, timeout: float = 2.0) -> str | None:
  """Tell why nothing listens at an address; None if something does."""
  try:
    socket.create_connection((host, port), timeout).close()
  except OSError as error:
    return (error.strerror or str(error)).lower()
  return None


def list_addresses(config: dict[str, Any]) -> list[tuple[str, int]]:
  """Return hosts and ports of the servers that a user runs.

  Args:
    config: Dict as of `env_config.complete`.

  Raises:
    UsageError: If an address is not `host:port`.
  """
  if not config['servers']:
    return [(config['host'], config['port'])]
  return [_parse_address(x) for x in config['servers']]


def _parse_address(text):
  host, _, port = text.rpartition(':')
  if not (host and port.isdecimal() and 1 <= int(port) <= 65533):
    raise errors.UsageError(
      f'The address {text!r} of a CARLA server is not valid; give '
      'carla_servers: [host:port, ...] with ports from 1 to 65533.'
    )
  return host, int(port)


def too_few_servers(
  reason: str, addresses: Sequence[tuple[str, int]]
) -> errors.UsageError:
  """Return the error of having no server for each environment.

  Args:
    reason: Beginning of a sentence, which the addresses complete.
    addresses: Hosts and ports of the servers that there are.
  """
  listed = ', '.join(f'{host}:{port}' for host, port in addresses)
  free = max(port for _, port in addresses) + 10
  return errors.UsageError(
    f'{reason} {listed}. Start another one (./CarlaUE4.sh -RenderOffScreen '
    f'-carla-rpc-port={free}) and list all by carla_servers: [host:port, ...], '
    f'or set {SERVER_VARIABLE} to the path of CarlaUE4.sh so that each '
    'environment starts its own.'
  )


def find_binary(config: dict[str, Any]) -> str | None:
  """Return the program that starts servers; None if servers are given.

  Args:
    config: Dict as of `env_config.complete`.
  """
  return None if config['servers'] else os.environ.get(SERVER_VARIABLE)


def connect(
  host: str, port: int, timeout: float, allow_mismatch: bool
) -> 'carla.Client':
  """Connect to a running server of the right version.

  Args:
    host: Address of the server.
    port: Port of the server.
    timeout: Seconds to wait for answers.
    allow_mismatch: Whether other versions will do.

  Returns:
    `carla.Client`.

  Raises:
    UsageError: If there is none; says what to do.
  """
  carla = roads.import_carla()
  reason = why_unreachable(host, port)
  if reason:
    raise errors.UsageError(
      f'There is no CARLA server at {host}:{port} ({reason}). Start one with '
      f'./CarlaUE4.sh -RenderOffScreen -carla-rpc-port={port}, set '
      f'{SERVER_VARIABLE} to the path of CarlaUE4.sh, or use carla_backend: '
      'offline.'
    )
  client = carla.Client(host, port)
  client.set_timeout(timeout)
  try:
    server = client.get_server_version()
  except RuntimeError:
    raise errors.UsageError(
      f'{host}:{port} is open but does not answer as CARLA within {timeout:g} '
      's; another program may listen there, or the server is still starting. '
      'Give carla_port.'
    ) from None
  package = client.get_client_version()
  if server != package and not allow_mismatch:
    raise errors.UsageError(
      f'The CARLA server at {host}:{port} is version {server}, the Python '
      f'package is {package}. Use the same version, or give '
      'carla_allow_version_mismatch: true.'
    )
  return client


class Claim(NamedTuple):
  """Right to use a server or a port, until its lock is released."""

  host: str
  port: int
  lock: Any

  @property
  def address(self) -> str:
    return f'{self.host}:{self.port}'


def claim_server(host: str, port: int) -> Claim | None:
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
    claim = claim_server(host, port)
    if claim:
      ports = range(port, port + count)
      if all(why_unreachable(host, x, 0.2) for x in ports):
        return claim
      claim.lock.release()
  raise errors.UsageError(
    f'There are no free ports from {first} on for a CARLA server.'
  )
