"""Backend that runs the CARLA client in a separate process."""

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
from planet.envs.carla.server import world

# Minimum number of attempts, even if they take longer.
_FEWEST_ATTEMPTS = 3
# Limits in seconds in case the library hangs despite its own time-outs, which
# may be longer.
_TICK_LIMIT, _RESET_LIMIT = 60.0, 180.0


class IsolatedBackend(backend_lib.Backend):
  """Drive on a server from a separate process.

  If a server dies, the client library may hang or abort its process. So after
  any failure, the process ends, after removing its actors and stopping a server
  that it started; the next reset starts a new process. If the process dies,
  this counts as a failure of the world.
  """

  name = 'server'
  seconds_to_close = world.ServerBackend.seconds_to_close + 5.0

  def __init__(self):
    self._host: hosts.EnvHost | None = None
    self._points: list[places.Pose] = []

  @property
  def pid(self) -> int | None:
    """Id of the client process, None if there is none."""
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
        return self._call_within('reset', episode)
      except backend_lib.Unusable as error:
        raise backend_lib.BackendError(str(error)) from None
      except (backend_lib.BackendError, errors.UsageError) as error:
        reason = str(error)
        logging.getLogger(__name__).warning(
          'Attempt %d of %d to start an episode failed: %s',
          attempt,
          attempts,
          reason,
        )
      is_late = time.monotonic() > limit
      if attempt == attempts or attempt >= _FEWEST_ATTEMPTS and is_late:
        break
      time.sleep(pause)
    raise backend_lib.BackendError(
      f'Could not start an episode in {attempt} attempts: {reason}'
    )

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    return self._call_within('tick', control)

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
    """Kill the process if it hangs in the library; its call then fails."""
    if self.pid:
      os.kill(self.pid, signal.SIGKILL)

  def _call_within(self, *request):
    limit = threading.Timer(self._find_limit(request[0]), self._kill)
    limit.start()
    try:
      return self._call(*request)
    finally:
      limit.cancel()

  def _find_limit(self, name):
    """Return the seconds that a call may take with its own time-outs."""
    names = 'timeout', 'image_timeout', 'map_timeout'
    call, image, load = (self._config[x] for x in names)
    if name == 'tick':
      return max(_TICK_LIMIT, 2 * (call + image))
    return max(_RESET_LIMIT, load + 2 * call + 20 * image)

  def _start(self):
    make = functools.partial(_open, self._config)
    self._host = hosts.EnvHost(make, 'process')
    self._points = self._call('spawn_points')
    # The map stays the same if another server takes over.
    if not self.map:
      name, text = self._call('read_map')
      self.map = roads.parse(f'{name} of the CARLA server', name, text)

  def _call(self, name, *args):
    """Call a method in the other process; end the process on failure."""
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
