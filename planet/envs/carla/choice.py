"""Choice between the two worlds."""

import logging
from typing import Any

from agents.run import errors
from planet.envs.carla import backend
from planet.envs.carla.offline import world as offline
from planet.envs.carla.server import connect, isolated


def make(name: str) -> backend.Backend:
  """Create a backend by its name, `server` or `offline`."""
  worlds = (isolated.IsolatedBackend, offline.OfflineBackend)
  return {x.name: x for x in worlds}[name]()


def choose(config: dict[str, Any]) -> str:
  """Decide in which world to drive, and warn if it is the offline one.

  A server that could be started counts as one.

  Args:
    config: Dict as of `env_config.complete`.

  Returns:
    `server` or `offline`.
  """
  if connect.find_binary(config):
    return 'server'
  reasons = []
  for address in connect.list_addresses(config):
    try:
      connect.connect(
        *address, config['timeout'], config['allow_version_mismatch']
      )
      return 'server'
    except errors.UsageError as error:
      reasons.append(str(error))
  logging.getLogger(__name__).warning(
    '%s Using the offline backend, map %s; give carla_backend: server to '
    'require a server.',
    ' '.join(reasons),
    config['map'],
  )
  return 'offline'
