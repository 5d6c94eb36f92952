"""Choice between the two worlds."""

import logging
import os

from agents.run import errors
from planet.envs.carla import backend
from planet.envs.carla.offline import world as offline
from planet.envs.carla.server import connect
from planet.envs.carla.server import world as server


class _Once(logging.Filter):
  """Let every message pass only once."""

  def __init__(self):
    super().__init__()
    self.seen = set()

  def filter(self, record):
    message = record.getMessage()
    is_new = message not in self.seen
    self.seen.add(message)
    return is_new


_LOG = logging.getLogger(__name__)
_LOG.addFilter(_Once())


def make(name: str) -> backend.Backend:
  """Create a backend by its name, `server` or `offline`."""
  worlds = (server.ServerBackend, offline.OfflineBackend)
  return {x.name: x for x in worlds}[name]()


def choose(
  wanted: str,
  host: str,
  port: int,
  timeout: float,
  allow_mismatch: bool,
  map_name: str,
) -> str:
  """Decide which backend `auto` means, and say so once.

  A server that could be started counts as one.

  Args:
    wanted: `auto`, `server` or `offline`.
    host: Address of the server.
    port: Port of the server.
    timeout: Seconds to wait for answers.
    allow_mismatch: Whether servers of another version will do.
    map_name: Map that the offline world would use.

  Returns:
    `server` or `offline`.
  """
  if wanted != 'auto':
    return wanted
  reason = connect.find_obstacle(host, port)
  if reason and os.environ.get(connect.SERVER_VARIABLE):
    return 'server'
  if not reason:
    try:
      connect.connect(host, port, timeout, allow_mismatch)
      return 'server'
    except errors.UsageError as error:
      reason = str(error)
  _LOG.warning(
    'There is no CARLA server at %s:%d (%s); using the offline backend, map '
    '%s. Give carla_backend: server to require a server.',
    host,
    port,
    reason,
    map_name,
  )
  return 'offline'
