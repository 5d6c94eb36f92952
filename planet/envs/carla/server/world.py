"""World of a CARLA 0.9.16 server in synchronous mode."""

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

# Duration in seconds and maximum number of physics substeps; CARLA allows 16.
_SUBSTEP = 0.01
_MAX_SUBSTEPS = 16
_SETTLE_TICKS = 40
# Meters; identifies our settings on a server. Only large maps use this value.
_MARK = 2016.0
# Factor of the time-out for the first image of an episode.
_FIRST_IMAGE = 10
# Seconds for a call while cleaning up.
_CLOSE_TIMEOUT = 5.0
# Acceleration in m/s^2 that indicates a collision.
_JOLT = 15.0
# Seconds to wait for the event of such a collision.
_EVENT_TIMEOUT = 0.2
# Relative difference of durations that is due to rounding.
_ROUNDING = 1e-3
# Speed in m/s of a fall, and meters below a road, that no road explains.
_FALL, _BELOW = 10.0, 20.0
# Distance in meters of a spawn point from the nearest lane.
_FAR = 5.0
_OWN_SERVER = 'Stop that client; each environment needs its own server.'


class ServerBackend(backend_lib.Backend):
  """Drive one ego vehicle on a server that no other client ticks.

  Connects to a running server that no other environment uses, or else starts
  the program in the environment variable CARLA_SERVER. After an error, the
  backend can only be closed; see `isolated.IsolatedBackend`.
  """

  name = 'server'
  # A minute for calls, plus the time to stop and kill a server.
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
    self._settings: Any = None

  def open(self, config: dict[str, Any]) -> None:
    self._config = config
    self._carla = roads.import_carla()
    try:
      with self._own_errors():
        self._claim_server()
        self._client = connect.wait_for_town(
          self._claim.host, self._claim.port, config, self._server
        )
        self._set_up()
    except BaseException:
      self.close()
      raise

  def read_map(self) -> tuple[str, str]:
    """Return the name and the OpenDRIVE text of the map."""
    with self._own_errors():
      return self.map.name, self.map.to_opendrive()

  def spawn_points(self) -> list[places.Pose]:
    return [
      (x.location.x, x.location.y, x.location.z, x.rotation.yaw)
      for x in self._points
    ]

  def reset(self, episode: backend_lib.Episode) -> backend_lib.Frame:
    with self._own_errors():
      self._end_episode()
      self._apply_settings()
      self._tick()
      if episode.num_vehicles or self._config['expert']:
        self._prepare_traffic(episode.seed)
      self._world.set_pedestrians_seed(episode.seed)
      # `Default` of CARLA looks different in each town.
      weather = scenarios.WEATHERS[episode.weather or 1]
      self._world.set_weather(getattr(self._carla.WeatherParameters, weather))
      self._weather = self._world.get_weather()
      port = self._manager_claim.port if self._manager_claim else None
      self._actors = actors_lib.Actors(
        self._client, self._world, self._config, port
      )
      self._actors.spawn(episode, self._points, self._tick)
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
      # Avoid a time-out per call if the server is dead.
      with contextlib.suppress(Exception):
        client.set_timeout(_CLOSE_TIMEOUT)
        client.get_server_version()
        self._restore()
    if self._server:
      self._server.close()
      self._server = None
    if self._claim:
      self._claim.lock.release()
      self._claim = None

  def _own_errors(self):
    """Convert errors of the client library to `BackendError`."""
    return connect.translated(
      lambda unused: self._server.why_ended() if self._server else None,
      lambda: self._claim.address,
    )

  def _claim_server(self):
    """Claim a server that no other environment uses, or start one."""
    addresses = connect.list_addresses(self._config)
    binary = connect.find_binary(self._config)
    running = [x for x in addresses if not connect.why_unreachable(*x)]
    # Without a program, connecting to a silent server explains the problem.
    silent = [] if binary else [x for x in addresses if x not in running]
    for address in running + silent:
      self._claim = connect.claim_server(*address)
      if self._claim:
        return
    if not binary:
      raise connect.too_few_servers(
        'Other environments use all CARLA servers. Each environment needs its '
        'own server, but there is only',
        self._config,
      )
    # `close` releases the claim if the start fails.
    self._claim = connect.claim_ports(self._config['port'], 3, 10)
    self._server = launch.Server(binary, self._claim.port, self._config)

  def _set_up(self):
    """Prepare the world and its settings."""
    self._world = self._client.get_world()
    self._original = self._remove_leftovers()
    self._client.set_timeout(self._config['map_timeout'])
    self._world = self._load_world()
    self._client.set_timeout(self._config['timeout'])
    self.map = self._world.get_map()
    self._points = self._find_points()
    self._id = self._world.id
    self._apply_settings()

  def _find_points(self):
    """Return the spawn points on lanes.

    Raises:
      Unusable: If there are none.
    """
    points = self.map.get_spawn_points()
    found = [x for x in points if self._is_on_lane(x.location)]
    known = f'{len(points) - len(found)} of {len(points)} spawn points'
    town = _town(self.map.name)
    if not found:
      raise backend_lib.Unusable(
        f'The town {town} of the CARLA server at {self._claim.address} has no '
        f'spawn points on its roads ({known} are elsewhere), so that no car '
        'can start; load another town by map or add spawn points.'
      )
    if len(found) < len(points):
      logging.getLogger(__name__).warning(
        '%s of %s are not on a road; episodes do not use them.', known, town
      )
    return found

  def _is_on_lane(self, place):
    if not np.isfinite([place.x, place.y, place.z]).all():
      return False
    # Driving lanes by default.
    lane = self.map.get_waypoint(place)
    return bool(lane) and place.distance(lane.transform.location) < _FAR

  def _apply_settings(self):
    """Set up the clock, which other clients may have changed."""
    changed = self._settings and self._find_changes()
    if changed:
      logging.getLogger(__name__).warning('%s', changed)
    self._world.apply_settings(self._synchronous())
    self._settings = self._world.get_settings()
    # The server may have made frames of its own until now.
    self._number = None

  def _remove_leftovers(self):
    """Clean up after a killed run; return the original settings.

    The server still waits for ticks and lists no actors before the next one.
    """
    world, settings = self._world, self._world.get_settings()
    is_ours = round(settings.actor_active_distance) == _MARK
    if settings.synchronous_mode:
      # A newly connected client may miss a tick.
      with contextlib.suppress(RuntimeError):
        world.tick(1.0)
      world.tick(self._config['timeout'])
    if actors_lib.destroy_leftovers(self._client, world) or is_ours:
      logging.getLogger(__name__).warning(
        'Removed leftovers of an earlier run on the CARLA server at %s.',
        self._claim.address,
      )
    if is_ours:
      settings = self._carla.WorldSettings()
      world.apply_settings(settings)
    return settings

  def _load_world(self):
    """Return the world of the wanted town; load it if needed."""
    wanted = _town(self._config['server_map'])
    world = self._client.get_world()
    shown = _town(world.get_map().name)
    # Layered variants of a town have the same roads.
    if shown.removesuffix('_Opt') == wanted.removesuffix('_Opt'):
      return world
    if not self._config['load_map']:
      raise errors.UsageError(
        f'The CARLA server at {self._claim.address} has loaded {shown}, but '
        f'the run needs {wanted}; load that town, change map or the '
        'scenario, or set load_map: true.'
      )
    known = [_town(x) for x in self._client.get_available_maps()]
    if wanted not in known:
      raise errors.UsageError(
        f'The CARLA server at {self._claim.address} has no map {wanted!r}. '
        f'{errors.suggest(wanted, known)} Some towns need the package of '
        'additional maps.'
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
    # Slightly longer than needed, to stay below the limit despite rounding.
    longest = (1 + 1e-6) * dt / _MAX_SUBSTEPS
    settings.max_substep_delta_time = max(_SUBSTEP, longest)
    return settings

  def _prepare_traffic(self, seed):
    """Create the traffic manager in this process.

    If it cannot be shut down, the process is unusable, because the library
    would return the old manager with its old server.
    """
    if not self._manager:
      self._manager_claim = connect.claim_ports(self._config['tm_port'], 1, 1)
      port = self._manager_claim.port
      self._manager = self._client.get_trafficmanager(port)
      self._manager.set_synchronous_mode(True)
      self._manager.set_global_distance_to_leading_vehicle(2.0)
    self._manager.set_random_device_seed(seed)

  def _settle(self):
    """Wait until the car is at rest and all cameras send images.

    A camera sends its first image a few ticks after it was told to listen.
    """
    ego = self._actors.ego
    # Otherwise cars ignore the throttle for some 50 ticks after they spawn, see
    # https://github.com/carla-simulator/carla/issues/3256.
    ego.apply_control(
      self._carla.VehicleControl(brake=1.0, manual_gear_shift=True, gear=1)
    )
    seconds = _FIRST_IMAGE * self._config['image_timeout']
    limit = time.monotonic() + seconds
    quiet = ticks = 0
    while True:
      _, velocity = self._locate(self._tick())
      ticks += 1
      quiet = quiet + 1 if abs(velocity.z) < 0.01 else 0
      if all(x.has_sent() for x in self._actors.cameras):
        if quiet >= 2 or ticks >= _SETTLE_TICKS:
          break
      elif time.monotonic() > limit:
        raise backend_lib.BackendError(
          f'A camera sent no first image within {seconds:g} s; raise '
          'image_timeout.'
        )
      else:
        time.sleep(0.02)
    # The gear box is automatic again.
    ego.apply_control(self._carla.VehicleControl(brake=1.0))
    self._velocity = velocity

  def _tick(self, before=0):
    """Advance by one step and return its `carla.WorldSnapshot`.

    Args:
      before: Number of ticks of this environment since the last call.

    Raises:
      BackendError: If another client has changed the clock or the town.
    """
    number = self._world.tick(self._config['timeout'])
    snapshot = self._world.get_snapshot()
    last, self._number = self._number, number
    dt, wanted = snapshot.timestamp.delta_seconds, self._config['dt']
    if snapshot.id != self._id:
      raise self._interference('has loaded a town on')
    if last is not None:
      changed = self._find_changes()
      if changed:
        raise changed
      if snapshot.frame != last + before + 1:
        details = f': frame {snapshot.frame} came after frame {last}'
        raise self._interference('also ticks', details)
      if abs(dt - wanted) > _ROUNDING * wanted:
        raise backend_lib.BackendError(
          f'The CARLA server at {self._claim.address} made a step of '
          f'{dt:.3g} s instead of {wanted:g} s; restart it.'
        )
    return snapshot

  def _find_changes(self):
    """Return the error that another client has changed settings, or None."""
    now = self._world.get_settings()
    if now == self._settings:
      return None
    names = [x for x in dir(now) if not x.startswith('_')]
    values = [(x, getattr(self._settings, x), getattr(now, x)) for x in names]
    changes = ', '.join(f'{x} {y} to {z}' for x, y, z in values if y != z)
    return self._interference('has changed the settings of', f': {changes}')

  def _interference(self, what, details=''):
    """Return the error that another client has done something."""
    return backend_lib.BackendError(
      f'Another client {what} the CARLA server at {self._claim.address}'
      f'{details}. {_OWN_SERVER}'
    )

  def _locate(self, snapshot):
    """Return pose and velocity of the car.

    Raises:
      BackendError: If the car falls or is nowhere, or if an actor of this
        environment is missing.
    """
    for name, number in self._actors.own().items():
      if not snapshot.has_actor(number):
        raise self._interference(f'has destroyed the {name} on')
    ego = snapshot.find(self._actors.ego.id)
    pose, velocity = ego.get_transform(), ego.get_velocity()
    x, y, z = place = pose.location.x, pose.location.y, pose.location.z
    speeds = velocity.x, velocity.y, velocity.z
    if not np.isfinite([*place, *speeds, pose.rotation.yaw]).all():
      raise backend_lib.BackendError(
        f'The CARLA server at {self._claim.address} reports a car at {place} '
        f'with velocity {speeds}; restart the server.'
      )
    lane = self.map.get_waypoint(pose.location)
    is_below = lane and z < lane.transform.location.z - _BELOW
    if velocity.z < -_FALL or is_below:
      raise backend_lib.BackendError(
        f'The car falls, with {-velocity.z:.0f} m/s, at x {x:.0f}, y {y:.0f}, '
        f'z {z:.0f} m: the town has no ground there. Load another town or '
        'restart the server.'
      )
    return pose, velocity

  def _advance(self, control):
    """Tick and return the frame; None lets the traffic manager drive."""
    snapshot = self._tick()
    number = snapshot.frame
    pose, velocity = self._locate(snapshot)
    if self._world.get_weather() != self._weather:
      raise self._interference('has changed the weather of')
    if control is None:
      taken = self._actors.ego.get_control()
      control = backend_lib.Control(taken.throttle, taken.steer, taken.brake)
    size = self._config['x_res'], self._config['y_res']
    shrink = sensors.SENSORS[self._config['use_sensor']].shrink
    images = [shrink(x.read(number), *size) for x in self._actors.cameras]
    jolt = (velocity - self._velocity).length() > _JOLT * self._config['dt']
    self._velocity = velocity
    timeout = _EVENT_TIMEOUT if jolt else 0.0
    return backend_lib.Frame(
      number=number,
      image=np.concatenate(images, -1) if images else None,
      location=(pose.location.x, pose.location.y, pose.location.z),
      yaw=pose.rotation.yaw,
      velocity=(velocity.x, velocity.y, velocity.z),
      collisions=self._actors.collisions.read(number, timeout),
      control=control,
    )

  def _restore(self):
    """Restore the state of the server, continuing after failures.

    Restores settings first, because the traffic manager may abort this process
    and the server has to continue alone.
    """
    for end in (self._restore_settings, self._end_traffic, self._end_episode):
      try:
        end()
      except Exception as error:
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
  """Return the last part of the name of a map."""
  return path.rpartition('/')[2]
