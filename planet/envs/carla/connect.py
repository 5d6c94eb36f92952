"""Whether there is a CARLA server of the right version."""

import functools
import logging
import os

from agents.tools import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import roads

SERVER_VARIABLE = 'CARLA_SERVER'


def choose(wanted, host, port, timeout, allow_mismatch, map_name):
  """Decide which backend `auto` means, and say so once.

  A server that could be started counts as one.

  Args:
    wanted: `auto`, `server` or `offline`.
    host, port: Address of the server.
    timeout: Seconds to wait for answers.
    allow_mismatch: Whether servers of another version will do.
    map_name: Map that the offline world would use.

  Returns:
    `server` or `offline`.
  """
  if wanted != 'auto':
    return wanted
  reason = backend_lib.answers(host, port)
  if reason and os.environ.get(SERVER_VARIABLE):
    return 'server'
  if not reason:
    try:
      check_version(host, port, timeout, allow_mismatch)
      return 'server'
    except errors.UsageError as error:
      reason = str(error)
  _tell(
    f'There is no CARLA server at {host}:{port} ({reason}); using the offline '
    f'backend, map {map_name}. Give carla_backend: server to require a server.'
  )
  return 'offline'


def connect(host, port, timeout, allow_mismatch):
  """Client of a running server of the right version.

  Args:
    host, port: Address of the server.
    timeout: Seconds to wait for answers.
    allow_mismatch: Whether other versions will do.

  Returns:
    `carla.Client`.

  Raises:
    UsageError: If there is none; says what to do.
  """
  carla = roads.import_carla()
  reason = backend_lib.answers(host, port)
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


def check_version(host, port, timeout, allow_mismatch):
  """Refuse what is not a server of the right version; see `connect`."""
  connect(host, port, timeout, allow_mismatch)


@functools.cache
def _tell(message):
  logging.getLogger(__name__).warning(message)
