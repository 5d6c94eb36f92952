"""World of a CARLA server, driven from a process of its own."""

import functools
import logging
import os
import signal
import threading
import time
from typing import Any

from agents.envs import hosts
from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import places, roads
from planet.envs.carla.server import connect, world

# Attempts that are made however long they take.
_FEWEST_ATTEMPTS = 3
# Seconds for calls, which have shorter limits unless the library hangs.
_TICK_LIMIT, _RESET_LIMIT = 60.0, 180.0


class IsolatedBackend(backend_lib.Backend):
  """Drives on a server from a process that may be lost.

  The client library, and its traffic manager above all, may hang on to a
  server that has died, or abort the process. So after any failure the process
  ends, with what it has put into the world and with a server that it has
  started; the next reset begins with a new one. The death of the process is a
  failure of the world like any other.
  """

  name = 'server'
  seconds_to_close = world.ServerBackend.seconds_to_close + 5.0

  def __init__(self):
    self._host: hosts.EnvHost | None = None
    self._points: list[places.Pose] = []

  @property
  def pid(self) -> int | None:
    """Number of the process that drives, None if there is none."""
    return self._host.pid if self._host else None

  def open(self, config: dict[str, Any]) -> None:
    self._config = config
    try:
      self._start()
    except backend_lib.BackendError as error:
      raise errors.UsageError(str(error)) from None

  def spawn_points(self) -> list[places.Pose]:
    return self._points

  def reset(self, episode: backend_lib.Episode) -> backend_lib.Frame:
    attempts, pause = self._config['retries'], self._config['retry_pause']
    limit = time.monotonic() + attempts * pause
    for attempt in range(1, attempts + 1):
      try:
        if not self._host:
          self._start()
        return self._call_within(_RESET_LIMIT, 'reset', episode)
      except connect.StillLoading as error:
        # A new attempt would end a server that still loads its town.
        raise backend_lib.BackendError(str(error)) from None
      except (backend_lib.BackendError, errors.UsageError) as error:
        reason = str(error)
        logging.getLogger(__name__).warning(
          'Attempt %d of %d to begin an episode failed: %s',
          attempt,
          attempts,
          reason,
        )
      if attempt >= _FEWEST_ATTEMPTS and time.monotonic() > limit:
        break
      time.sleep(pause)
    raise backend_lib.BackendError(
      f'The CARLA server does not work after {attempt} attempts: {reason}'
    )

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    return self._call_within(_TICK_LIMIT, 'tick', control)

  def others(self) -> list[places.Point]:
    try:
      return self._call('others')
    except backend_lib.BackendError:
      return []

  def close(self) -> None:
    if self._host:
      self._host.close()
      self._host = None

  def _kill(self):
    """End a process that hangs in the library; its call fails then."""
    if self.pid:
      os.kill(self.pid, signal.SIGKILL)

  def _call_within(self, seconds, *request):
    limit = threading.Timer(seconds, self._kill)
    limit.start()
    try:
      return self._call(*request)
    finally:
      limit.cancel()

  def _start(self):
    make = functools.partial(_open, self._config)
    self._host = hosts.EnvHost(make, 'process')
    self._points = self._call('spawn_points')
    # Another server loads the same town.
    self.map = self.map or roads.import_carla().Map(*self._call('read_map'))

  def _call(self, name, *args):
    """Call a method in the other process, which ends if that fails."""
    if not self._host:
      raise backend_lib.BackendError('There is no connection to the server.')
    try:
      return self._host.call(None, name, *args)()
    except (errors.EnvError, errors.WorkerDeath) as error:
      self.close()
      raise backend_lib.BackendError(str(error)) from None
    except BaseException:
      self.close()
      raise


def _open(config):
  backend = world.ServerBackend()
  backend.open(config)
  return backend
