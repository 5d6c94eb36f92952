"""Choice between the two worlds."""

import logging
from typing import Any

from agents.run import errors
from planet.envs.carla import backend
from planet.envs.carla.offline import world as offline
from planet.envs.carla.server import connect, isolated


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
  worlds = (isolated.IsolatedBackend, offline.OfflineBackend)
  return {x.name: x for x in worlds}[name]()


def choose(config: dict[str, Any]) -> str:
  """Decide in which world to drive, and say so once if it is the offline one.

  A server that could be started counts as one.

  Args:
    config: Dict as of `env_config.complete`.

  Returns:
    `server` or `offline`.
  """
  addresses = connect.list_addresses(config)
  reasons = [connect.find_obstacle(*x) for x in addresses]
  if all(reasons) and connect.find_binary(config):
    return 'server'
  for number, address in enumerate(addresses):
    if not reasons[number]:
      timeout, allowed = config['timeout'], config['allow_version_mismatch']
      try:
        connect.connect(*address, timeout, allowed)
        return 'server'
      except errors.UsageError as error:
        reasons[number] = str(error)
  _LOG.warning(
    'There is no CARLA server at %s (%s); using the offline backend, map %s. '
    'Give carla_backend: server to require a server.',
    connect.join_addresses(addresses),
    ', '.join(str(x) for x in reasons),
    config['map'],
  )
  return 'offline'
