"""World of a CARLA 0.9.16 server, in synchronous mode."""

import contextlib
import logging
import time
from typing import Any

import numpy as np

from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import places, roads, scenarios, sensors
from planet.envs.carla.server import actors as actors_lib
from planet.envs.carla.server import connect, launch

# Seconds and number of the steps of the physics. The client library documents
# that there may be 16.
_SUBSTEP = 0.01
_MAX_SUBSTEPS = 16
_SETTLE_TICKS = 40
# Metres; marks our settings on the server, where only large maps heed it.
_MARK = 2016.0
# The first image of an episode may take longer by this factor.
_FIRST_IMAGE = 10
# Seconds for a tick that a client may miss, as it has just connected.
_FIRST_TICK = 1.0
# Seconds for a call while cleaning up.
_CLOSE_TIMEOUT = 5.0
# A faster change of the speed than that is a collision, m/s^2.
_JOLT = 15.0
# Seconds that the sensor may take to tell of it.
_EVENT_TIMEOUT = 0.2


class ServerBackend(backend_lib.Backend):
  """Drives one ego vehicle on a server, of which it is the only ticker.

  Connects to a running server that no other environment uses. If there is
  none, it starts one of its own where the variable CARLA_SERVER names a
  program. After an error it can only be closed; see
  `isolated.IsolatedBackend`.
  """

  name = 'server'
  # A minute for the calls, and what a server of ours is given to end before and
  # after it is killed.
  seconds_to_close = 80.0

  def __init__(self):
    self._server: launch.Server | None = None
    self._claim: Any = None
    self._manager_claim: Any = None
    self._client: Any = None
    self._world: Any = None
    self._original: Any = None
    self._manager: Any = None
    self._actors: Any = None

  def open(self, config: dict[str, Any]) -> None:
    self._config = config
    self._carla = roads.import_carla()
    try:
      self._claim_server()
      self._client = connect.wait_for_town(
        self._claim.host, self._claim.port, config, self._server
      )
      with self._own_errors():
        self._set_up()
    except BaseException:
      self.close()
      raise

  def read_map(self) -> tuple[str, str]:
    """Return the name and the OpenDRIVE text of the map."""
    with self._own_errors():
      return self.map.name, self.map.to_opendrive()

  def spawn_points(self) -> list[places.Pose]:
    with self._own_errors():
      return [
        (x.location.x, x.location.y, x.location.z, x.rotation.yaw)
        for x in self.map.get_spawn_points()
      ]

  def reset(self, episode: backend_lib.Episode) -> backend_lib.Frame:
    with self._own_errors():
      self._end_episode()
      self._world.tick(self._config['timeout'])
      if episode.num_vehicles or self._config['expert']:
        self._prepare_traffic(episode.seed)
      self._world.set_pedestrians_seed(episode.seed)
      # `Default` of CARLA looks different in each town.
      weather = scenarios.WEATHERS[episode.weather or 1]
      self._world.set_weather(getattr(self._carla.WeatherParameters, weather))
      port = self._manager_claim.port if self._manager_claim else None
      self._actors = actors_lib.Actors(
        self._client, self._world, self._config, port
      )
      self._actors.spawn(episode)
      self._settle()
      frame = self._advance(backend_lib.Control(brake=1.0))
      frame.collisions.clear()
      if self._config['expert']:
        self._actors.hand_over(self._manager)
      return frame

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    with self._own_errors():
      if self._config['expert']:
        return self._advance(None)
      self._actors.ego.apply_control(self._carla.VehicleControl(*control))
      return self._advance(control)

  def others(self) -> list[places.Point]:
    with self._own_errors():
      return self._actors.places() if self._actors else []

  def close(self) -> None:
    client, self._client = self._client, None
    if client:
      # Do not wait for a dead server at every call.
      with contextlib.suppress(RuntimeError):
        client.set_timeout(_CLOSE_TIMEOUT)
        client.get_server_version()
        self._restore()
    if self._server:
      self._server.close()
      self._server = None
    if self._claim:
      self._claim.lock.release()
      self._claim = None

  @contextlib.contextmanager
  def _own_errors(self):
    """Turn errors of the client library into ours."""
    try:
      yield
    except backend_lib.BackendError:
      raise
    except RuntimeError as error:
      ended = self._server and self._server.why_ended()
      raise backend_lib.BackendError(
        ended or f'The CARLA server at {self._claim.address} fails: {error}'
      ) from error

  def _claim_server(self):
    """Claim a server that no other environment uses, or else start one."""
    addresses = connect.list_addresses(self._config)
    binary = connect.find_binary(self._config)
    running = [x for x in addresses if not connect.why_unreachable(*x)]
    # Without a program, connecting says what is wrong with a server.
    silent = [] if binary else [x for x in addresses if x not in running]
    for address in running + silent:
      self._claim = connect.claim_server(*address)
      if self._claim:
        return
    if not binary:
      raise connect.too_few_servers(
        'Other environments use all CARLA servers, and each needs one of its '
        'own, but there is only',
        self._config,
      )
    # Closing releases it if the start fails.
    self._claim = connect.claim_ports(self._config['port'], 3, 10)
    self._server = launch.Server(binary, self._claim.port, self._config)

  def _set_up(self):
    """Begin the session."""
    self._world = self._client.get_world()
    self._original = self._remove_leftovers()
    self._client.set_timeout(self._config['map_timeout'])
    self._world = self._load_world()
    self._client.set_timeout(self._config['timeout'])
    self.map = self._world.get_map()
    self._world.apply_settings(self._synchronous())

  def _remove_leftovers(self):
    """Clean up after a run that was killed; return the original settings.

    Its server still waits for ticks, and tells of no actors before the next.
    """
    world, settings = self._world, self._world.get_settings()
    is_ours = round(settings.actor_active_distance) == _MARK
    if settings.synchronous_mode:
      try:
        world.tick(_FIRST_TICK)
      except RuntimeError:
        world.tick(self._config['timeout'])
    if actors_lib.destroy_leftovers(self._client, world) or is_ours:
      logging.getLogger(__name__).warning(
        'Removed what an earlier run has left on the CARLA server at %s.',
        self._claim.address,
      )
    if is_ours:
      settings = self._carla.WorldSettings()
      world.apply_settings(settings)
    return settings

  def _load_world(self):
    """Return the world if it is the wanted town, or load the town."""
    wanted = _town(self._config['server_map'])
    world = self._client.get_world()
    shown = _town(world.get_map().name)
    # Variants of a town with layers have the same roads.
    if shown.removesuffix('_Opt') == wanted.removesuffix('_Opt'):
      return world
    if not self._config['load_map']:
      raise errors.UsageError(
        f'The CARLA server at {self._claim.address} shows {shown}, not '
        f'{wanted} as the scenario wants; load it there, give carla_map or '
        'another scenario, or allow it by carla_load_map: true.'
      )
    known = [_town(x) for x in self._client.get_available_maps()]
    if wanted not in known:
      raise errors.UsageError(
        f'The CARLA server at {self._claim.address} has no map {wanted!r}. '
        f'{errors.suggest(wanted, known)} Some towns come with the package '
        'of additional maps.'
      )
    return self._client.load_world(wanted, reset_settings=False)

  def _synchronous(self):
    settings = self._world.get_settings()
    dt = self._config['dt']
    settings.synchronous_mode = True
    settings.fixed_delta_seconds = dt
    settings.no_rendering_mode = False
    settings.actor_active_distance = _MARK
    settings.substepping = True
    settings.max_substeps = _MAX_SUBSTEPS
    # A little longer than needed, so that rounding does not break the limit.
    longest = (1 + 1e-6) * dt / _MAX_SUBSTEPS
    settings.max_substep_delta_time = max(_SUBSTEP, longest)
    return settings

  def _prepare_traffic(self, seed):
    """Create the traffic manager, which lives in this process.

    If it cannot be shut down again, this process is of no more use, as the
    library would hand out the old manager with its old server.
    """
    if not self._manager:
      self._manager_claim = connect.claim_ports(self._config['tm_port'], 1, 1)
      port = self._manager_claim.port
      self._manager = self._client.get_trafficmanager(port)
      self._manager.set_synchronous_mode(True)
      self._manager.set_global_distance_to_leading_vehicle(2.0)
    self._manager.set_random_device_seed(seed)

  def _settle(self):
    """Let the car come to rest, and all cameras begin to send.

    A camera listens some ticks later than it is told to.
    """
    self._actors.ego.apply_control(self._carla.VehicleControl(brake=1.0))
    seconds = _FIRST_IMAGE * self._config['image_timeout']
    limit = time.monotonic() + seconds
    quiet = ticks = 0
    while True:
      self._world.tick(self._config['timeout'])
      ticks += 1
      fall = abs(self._actors.ego.get_velocity().z)
      quiet = quiet + 1 if fall < 0.01 else 0
      if all(x.has_sent() for x in self._actors.cameras):
        if quiet >= 2 or ticks >= _SETTLE_TICKS:
          break
      elif time.monotonic() > limit:
        raise backend_lib.BackendError(
          f'A camera sent no first image within {seconds:g} s; give '
          'carla_image_timeout.'
        )
      else:
        time.sleep(0.02)
    self._velocity = self._actors.ego.get_velocity()

  def _advance(self, control):
    """Tick; the traffic manager chooses controls meanwhile that are None."""
    number = self._world.tick(self._config['timeout'])
    if control is None:
      taken = self._actors.ego.get_control()
      control = backend_lib.Control(taken.throttle, taken.steer, taken.brake)
    size = self._config['x_res'], self._config['y_res']
    shrink = sensors.SENSORS[self._config['use_sensor']].shrink
    images = [shrink(x.read(number), *size) for x in self._actors.cameras]
    ego = self._world.get_snapshot().find(self._actors.ego.id)
    if ego is None:
      raise backend_lib.BackendError('The ego vehicle has disappeared.')
    pose, velocity = ego.get_transform(), ego.get_velocity()
    jolt = (velocity - self._velocity).length() > _JOLT * self._config['dt']
    self._velocity = velocity
    timeout = _EVENT_TIMEOUT if jolt else 0.0
    return backend_lib.Frame(
      number=number,
      image=np.concatenate(images, -1),
      location=(pose.location.x, pose.location.y, pose.location.z),
      yaw=pose.rotation.yaw,
      velocity=(velocity.x, velocity.y, velocity.z),
      collisions=self._actors.collisions.read(number, timeout),
      control=control,
    )

  def _restore(self):
    """Leave the server as it was found; one failure does not keep the rest.

    The traffic manager may abort this process, after which the server has to go
    on by itself.
    """
    for end in (self._restore_settings, self._end_traffic, self._end_episode):
      try:
        end()
      except RuntimeError as error:
        logging.getLogger(__name__).warning(
          'Could not clean up the CARLA server at %s: %s',
          self._claim.address,
          error,
        )

  def _end_traffic(self):
    if self._manager:
      self._manager.shut_down()
      self._manager_claim.lock.release()

  def _end_episode(self):
    actors, self._actors = self._actors, None
    if actors:
      actors.destroy()

  def _restore_settings(self):
    if self._original:
      self._world.apply_settings(self._original)
      if self._original.synchronous_mode:
        self._world.tick(_CLOSE_TIMEOUT)


def _town(path):
  """Last part of the name of a map."""
  return path.rpartition('/')[2]
