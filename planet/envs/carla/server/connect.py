"""Find, claim and connect to CARLA servers.

Claims are locked files in a temporary folder, so they end with their process.
They only apply to processes of this project on this machine.
"""

import contextlib
import errno
import ipaddress
import os
import re
import socket
import tempfile
import time
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agents.run import errors, locks
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import roads

if typing.TYPE_CHECKING:
  import carla

SERVER_VARIABLE = 'CARLA_SERVER'
# Seconds for a call that blocks Python while the server may load its town.
_LOADING = 20.0


@contextlib.contextmanager
def translated(
  find_cause: Callable[[Exception], str | None], where: Callable[[], str]
) -> Iterator[None]:
  """Convert all errors of the client library to `BackendError`.

  Args:
    find_cause: Function from an error to a sentence about its cause, if known.
    where: Function that returns the address of the server.
  """
  try:
    yield
  except (backend_lib.BackendError, errors.UsageError):
    raise
  except Exception as error:
    if 'filesystem' in str(error):
      raise backend_lib.Unusable(
        'The CARLA client cannot write its cache, the folder carlaCache in '
        f'$HOME: {error}. Set HOME to a writable folder.'
      ) from None
    raise backend_lib.BackendError(
      find_cause(error)
      or f'The CARLA server at {where()} failed: {_describe(error)}'
    ) from error


def _describe(error):
  """Return the text of an error, and its type unless it is the usual one."""
  is_usual = type(error) is RuntimeError and str(error)
  return str(error) if is_usual else repr(error)


def why_unreachable(host: str, port: int) -> str | None:
  """Return why an address is unreachable; None if something listens."""
  try:
    socket.create_connection((host, port), timeout=2.0).close()
  except ConnectionRefusedError:
    if _is_local(host) and _why_taken(port) == errno.EADDRINUSE:
      return 'a program holds the port but does not listen'
    return 'connection refused'
  except (OSError, OverflowError) as error:
    return errors.reason_of(error).lower()
  return None


def _is_local(host):
  return host == 'localhost' or host.startswith('127.')


def _why_taken(port):
  """Return the error of a server that listens on a local port, or None."""
  try:
    socket.create_server(('', port)).close()
  except OSError as error:
    return error.errno
  return None


def list_addresses(config: dict[str, Any]) -> list[tuple[str, int]]:
  """Return host and port of each server that the user runs.

  Args:
    config: Complete settings, see `env_config.complete`.
  """
  host = config['host']
  if not re.fullmatch(r'(\[.*\]|[^:]*):\d{1,5}', host):
    host += f':{config["port"]}'
  given = config['servers'] or [host]
  parts = [x.rpartition(':') for x in given]
  return [(_find_ipv4(host), int(port)) for host, _, port in parts]


def _find_ipv4(host):
  """Return a host as the client library wants it, which knows only IPv4."""
  try:
    address = ipaddress.IPv6Address(host.strip('[]'))
  except ValueError:
    return host
  if address.is_loopback:
    return '127.0.0.1'
  if address.ipv4_mapped:
    return str(address.ipv4_mapped)
  raise errors.UsageError(
    f'The host {host} is an IPv6 address, but servers and clients of CARLA '
    'have only IPv4; give a name or an IPv4 address, such as 127.0.0.1 with '
    'a tunnel.'
  )


def too_few_servers(reason: str, config: dict[str, Any]) -> errors.UsageError:
  """Return the error that there are more environments than servers.

  Args:
    reason: Start of a sentence that the addresses of the servers complete.
    config: Complete settings, see `env_config.complete`.
  """
  addresses = list_addresses(config)
  listed = ', '.join(f'{host}:{port}' for host, port in addresses)
  free = max(port for _, port in addresses) + 10
  return errors.UsageError(
    f'{reason} {listed}. Start another one (./CarlaUE4.sh '
    f'{define_flags(free, config)}) and list all in servers: [host:port, '
    f'...], or set {SERVER_VARIABLE} to the path of CarlaUE4.sh to let each '
    'environment start its own.'
  )


def define_flags(port: int, config: dict[str, Any]) -> str:
  """Return the command-line flags of servers."""
  quality = config['quality']
  return f'-RenderOffScreen -quality-level={quality} -carla-rpc-port={port}'


def find_binary(config: dict[str, Any]) -> str | None:
  """Return the server program, or None if servers are given or it is not set.

  Args:
    config: Complete settings, see `env_config.complete`.
  """
  return None if config['servers'] else os.environ.get(SERVER_VARIABLE)


def connect(host: str, port: int, config: dict[str, Any]) -> 'carla.Client':
  """Connect to a server, which may still be loading its town.

  Args:
    host: Address of the server.
    port: Port of the server.
    config: Complete settings, see `env_config.complete`.

  Returns:
    `carla.Client`.

  Raises:
    UsageError: If there is no server, or it has another version.
  """
  carla = roads.import_carla()
  reason = why_unreachable(host, port)
  if reason:
    raise errors.UsageError(
      f'There is no CARLA server at {host}:{port} ({reason}). Start one with '
      f'./CarlaUE4.sh {define_flags(port, config)}, set {SERVER_VARIABLE} to '
      'the path of CarlaUE4.sh, or use backend: offline.'
    )
  silent = (
    f'{host}:{port} is open but does not respond like CARLA within '
    f'{config["timeout"]:g} s; another program may be using the port, or the '
    'server hangs. Restart the server or set port.'
  )
  try:
    with translated(lambda unused: silent, lambda: f'{host}:{port}'):
      client = carla.Client(host, port)
      client.set_timeout(config['timeout'])
      version = client.get_server_version()
  except backend_lib.BackendError as error:
    raise errors.UsageError(str(error)) from None
  # Custom builds have a suffix, such as 0.9.16-dirty.
  if not version.startswith(roads.VERSION):
    raise errors.UsageError(
      f'The CARLA server at {host}:{port} is version {version}; install '
      f'{roads.VERSION}: https://github.com/carla-simulator/carla/releases.'
    )
  return client


def wait_for_town(
  host: str, port: int, config: dict[str, Any], server: Any = None
) -> 'carla.Client':
  """Connect to a server and wait until it has loaded its town.

  A server reports its version long before it responds to other calls.

  Args:
    host: Address of the server.
    port: Port of the server.
    config: Complete settings, see `env_config.complete`.
    server: `launch.Server` that was just started, or None.

  Returns:
    `carla.Client`.

  Raises:
    Unusable: If this takes longer than `start_timeout`, as another attempt
      would stop a server that is still loading its town.
    UsageError: If there is no server.
  """
  limit = time.monotonic() + config['start_timeout']
  loading = (
    f'The CARLA server at {host}:{port} has not loaded a town within '
    f'{config["start_timeout"]:g} s; raise start_timeout.'
  )
  while True:
    try:
      client = connect(host, port, config)
      client.set_timeout(min(_LOADING, config['start_timeout']))
      with translated(
        lambda error: f'{loading} {error}' if _is_loading(error) else None,
        lambda: f'{host}:{port}',
      ):
        client.get_world()
      client.set_timeout(config['timeout'])
      return client
    except backend_lib.Unusable:
      raise
    except (errors.UsageError, backend_lib.BackendError) as error:
      if not server and isinstance(error, errors.UsageError):
        raise
      ended = server and server.why_ended()
      if ended:
        raise errors.UsageError(ended) from None
      if time.monotonic() > limit:
        is_late = isinstance(error, errors.UsageError)
        text = f'{loading} {error}' if is_late else str(error)
        raise backend_lib.Unusable(text) from None
    time.sleep(0.5)


def _is_loading(error):
  """Return whether a server fails like one that is loading its town."""
  return re.search('time-?out|not ready', str(error), re.IGNORECASE)


class Claim(NamedTuple):
  """Claim on a server or port until its lock is released."""

  host: str
  port: int
  lock: Any

  @property
  def address(self) -> str:
    return f'{self.host}:{self.port}'


def make_folder() -> str:
  """Create and return the folder of this user for locks and server logs."""
  name = f'reference_agents_carla_{os.getuid()}'
  folder = os.path.join(tempfile.gettempdir(), name)
  os.makedirs(folder, exist_ok=True)
  return folder


def claim_server(host: str, port: int) -> Claim | None:
  """Claim a server; return None if another environment of the user has it."""
  # Both names refer to the same machine.
  name = '127.0.0.1' if host == 'localhost' else re.sub(r'[^\w.-]', '_', host)
  lock = locks.try_lock(os.path.join(make_folder(), f'{name}_{port}.use'))
  return Claim(host, port, lock) if lock else None


def claim_ports(first: int, count: int, step: int) -> Claim:
  """Claim free ports on this machine.

  Args:
    first: Port to try first.
    count: Number of consecutive ports that must be free.
    step: Step between the ports to try.

  Raises:
    UsageError: If no ports are free.
  """
  host = '127.0.0.1'
  for port in range(first, 65537 - count, step):
    claim = claim_server(host, port)
    if claim:
      ports = range(port, port + count)
      if not any(map(_why_taken, ports)):
        return claim
      claim.lock.release()
  raise errors.UsageError(
    f'No ports from {first} are free for CARLA; try lower ones.'
  )
