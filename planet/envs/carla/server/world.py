"""World of a CARLA 0.9.16 server, in synchronous mode."""

import contextlib
import logging
import math
import os
from typing import Any

import numpy as np

from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import places, roads, scenarios, sensors
from planet.envs.carla.server import actors as actors_lib
from planet.envs.carla.server import claims, connect, launch

# Seconds and number of the steps of the physics. The client library documents
# that there may be 16, best shorter than 0.01666 s.
_SUBSTEP = 0.01
_COARSE_SUBSTEP = 0.01666
_MAX_SUBSTEPS = 16
_SETTLE_TICKS = 40
_TICK_TIMEOUT = 10.0


class ServerBackend(backend_lib.Backend):
  """Drives one ego vehicle on a server, of which it is the only ticker.

  Connects to a running server that no other environment uses. If there is
  none, it starts one of its own where `server_binary` or the variable
  CARLA_SERVER names a program. After an error it can only be closed; see
  `isolated.IsolatedBackend`.
  """

  name = 'server'
  # Twenty for the calls to a server that does not answer, and what a server of
  # ours is given to end before and after it is killed.
  seconds_to_close = 45.0

  def __init__(self):
    self._server: launch.Server | None = None
    self._claim: claims.Claim | None = None
    self._manager_claim: claims.Claim | None = None
    self._forget()

  def open(self, config: dict[str, Any]) -> None:
    self._config = config
    self._carla = roads.import_carla()
    try:
      with self._own_errors():
        self._connect()
    except BaseException:
      self.close()
      raise

  def describe_map(self) -> tuple[str, str, list[places.Pose]]:
    """Return the name, the OpenDRIVE text and the spawn points of the map."""
    with self._own_errors():
      text = self.map.to_opendrive()
      return self.map.name, text, self.spawn_points()

  def get_manager_port(self) -> int | None:
    """Return the port of the traffic manager, None if there is none."""
    return self._manager_claim.port if self._manager_claim else None

  def spawn_points(self) -> list[places.Pose]:
    return [
      (x.location.x, x.location.y, x.location.z, x.rotation.yaw)
      for x in self.map.get_spawn_points()
    ]

  def reset(
    self,
    start: places.Pose,
    weather: int,
    num_vehicles: int,
    num_pedestrians: int,
    seed: int,
  ) -> backend_lib.Frame:
    with self._own_errors():
      return self._begin(start, weather, num_vehicles, num_pedestrians, seed)

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    with self._own_errors():
      applied = control.throttle, control.steer, control.brake
      if self._config['expert']:
        return self._advance(None)
      self._actors.ego.apply_control(self._carla.VehicleControl(*applied))
      return self._advance(applied)

  def others(self) -> list[places.Point]:
    with self._own_errors():
      return self._actors.places() if self._actors else []

  def close(self) -> None:
    self._disconnect()
    if self._server:
      self._server.close()
      self._server = None
    if self._claim:
      self._claim.lock.release()
      self._claim = None

  @property
  def _address(self):
    if self._claim:
      return f'{self._claim.host}:{self._claim.port}'
    return connect.join_addresses(connect.list_addresses(self._config))

  @contextlib.contextmanager
  def _own_errors(self):
    """Turn errors of the client library into ours."""
    try:
      yield
    except backend_lib.BackendError:
      raise
    except RuntimeError as error:
      sentence = f'The CARLA server at {self._address} fails: {error}'
      if self._server and not self._server.is_running():
        sentence += f' Its output ends with: {self._server.tail()}'
      raise backend_lib.BackendError(sentence) from error

  def _forget(self):
    self._client: Any = None
    self._world: Any = None
    self._original: Any = None
    self._manager: Any = None
    self._actors: Any = None

  def _connect(self):
    """Session set-up of a running or new server."""
    config = self._config
    self._claim = self._find_server()
    self._client = connect.connect(
      self._claim.host,
      self._claim.port,
      config['timeout'],
      config['allow_version_mismatch'],
    )
    self._world = self._client.get_world()
    self._original = self._remove_leftovers(self._world)
    self._world = self._load_world()
    self.map = self._world.get_map()
    self._world.apply_settings(self._synchronous())

  def _find_server(self):
    """Claim a server, which may be a new one of ours."""
    config = self._config
    addresses = connect.list_addresses(config)
    binary = connect.find_binary(config)
    obstacles = {x: connect.find_obstacle(*x) for x in addresses}
    for address in sorted(addresses, key=lambda x: bool(obstacles[x])):
      # Without a program, connecting says what is wrong with a server.
      if not (binary and obstacles[address]):
        claim = claims.try_server(*address)
        if claim:
          return claim
    if not binary:
      raise errors.UsageError(
        f'Other environments use all CARLA servers '
        f'({connect.join_addresses(addresses)}), and each needs one of its '
        f'own. {connect.describe_more(addresses)}'
      )
    claim = claims.claim_ports(config['port'], 3, 10)
    log = config['server_log']
    if log:
      log = f'_{claim.port}'.join(os.path.splitext(log))
    flags = list(config['server_flags'])
    if config['adapter'] is not None:
      flags.append(f'-graphicsadapter={config["adapter"]}')
    try:
      self._server = launch.Server(binary, claim.port, log, flags=flags)
    except BaseException:
      claim.lock.release()
      raise
    return claim

  def _remove_leftovers(self, world):
    """Clean up after a run that was killed; return the original settings.

    Its server still waits for ticks, and tells of no actors before the next.
    """
    settings = world.get_settings()
    if settings.synchronous_mode:
      world.tick(self._config['timeout'])
    if actors_lib.destroy_leftovers(self._client, world):
      logging.getLogger(__name__).warning(
        'Removed what an earlier run has left on the CARLA server at %s.',
        self._address,
      )
      if settings.synchronous_mode:
        settings.synchronous_mode = False
        settings.fixed_delta_seconds = None
        world.apply_settings(settings)
    return settings

  def _load_world(self):
    """Return the world if it is the wanted town, or load the town."""
    wanted = connect.town(self._config['server_map'])
    self._client.set_timeout(self._config['map_timeout'])
    try:
      world = self._client.get_world()
      shown = connect.town(world.get_map().name)
      if connect.plain_town(shown) != connect.plain_town(wanted):
        self._check_town(wanted, shown)
        world = self._client.load_world(wanted, reset_settings=False)
    finally:
      self._client.set_timeout(self._config['timeout'])
    return world

  def _check_town(self, wanted, shown):
    if not self._config['load_map']:
      raise errors.UsageError(
        f'The CARLA server at {self._address} shows {shown}, not {wanted} as '
        'the scenario wants; load it there, give carla_map or another '
        'scenario, or allow it by carla_load_map: true.'
      )
    known = [connect.town(x) for x in self._client.get_available_maps()]
    if wanted not in known:
      raise errors.UsageError(
        f'The CARLA server at {self._address} has no map {wanted!r}. '
        f'{errors.suggest(wanted, known)} Some towns come with the package '
        'of additional maps.'
      )

  def _synchronous(self):
    settings = self._world.get_settings()
    dt = self._config['dt']
    settings.synchronous_mode = True
    settings.fixed_delta_seconds = dt
    settings.no_rendering_mode = False
    settings.substepping = True
    count = min(max(10, math.ceil(dt / _SUBSTEP - 1e-9)), _MAX_SUBSTEPS)
    settings.max_substeps = count
    # A little longer than needed, so that rounding does not break the limit.
    substep = max(_SUBSTEP, (1 + 1e-6) * dt / count)
    settings.max_substep_delta_time = substep
    if substep > _COARSE_SUBSTEP:
      logging.getLogger(__name__).warning(
        'Steps of %g s are too long for good physics on a server; give '
        'carla_dt up to %.2f.',
        dt,
        _MAX_SUBSTEPS * _COARSE_SUBSTEP,
      )
    return settings

  def _begin(self, start, weather, num_vehicles, num_pedestrians, seed):
    if self._actors:
      self._actors.destroy()
      self._actors = None
    self._world.tick(_TICK_TIMEOUT)
    if num_vehicles or self._config['expert']:
      self._prepare_traffic(seed)
    self._world.set_pedestrians_seed(seed)
    self._world.set_weather(
      getattr(self._carla.WeatherParameters, scenarios.WEATHERS[weather])
    )
    self._actors = actors_lib.Actors(
      self._carla,
      self._client,
      self._world,
      self._config,
      self.get_manager_port(),
    )
    self._actors.spawn(start, num_vehicles, num_pedestrians, seed)
    self._settle()
    self._actors.collisions.clear()
    frame = self._advance((0.0, 0.0, 1.0))
    if self._config['expert']:
      self._actors.hand_over(self._manager)
    return frame

  def _prepare_traffic(self, seed):
    """Create the traffic manager, which lives in this process.

    If it cannot be shut down again, this process is of no more use, as the
    library would hand out the old manager with its old server.
    """
    if not self._manager:
      self._manager_claim = claims.claim_ports(self._config['tm_port'], 1, 1)
      port = self._manager_claim.port
      self._manager = self._client.get_trafficmanager(port)
      self._manager.set_synchronous_mode(True)
      self._manager.set_global_distance_to_leading_vehicle(2.0)
    self._manager.set_random_device_seed(seed)

  def _settle(self):
    """Let the car come down and to a stop."""
    self._actors.ego.apply_control(self._carla.VehicleControl(brake=1.0))
    quiet = 0
    for _ in range(_SETTLE_TICKS):
      self._world.tick(_TICK_TIMEOUT)
      fall = abs(self._actors.ego.get_velocity().z)
      quiet = quiet + 1 if fall < 0.01 else 0
      if quiet >= 2:
        break

  def _advance(self, applied):
    """Tick; None are controls that the traffic manager chooses meanwhile."""
    number = self._world.tick(_TICK_TIMEOUT)
    if applied is None:
      taken = self._actors.ego.get_control()
      applied = taken.throttle, taken.steer, taken.brake
    image = self._read_image(number)
    snapshot = self._world.get_snapshot()
    ego = snapshot.find(self._actors.ego.id)
    if ego is None:
      raise backend_lib.BackendError('The ego vehicle has disappeared.')
    transform, velocity = ego.get_transform(), ego.get_velocity()
    return backend_lib.Frame(
      frame=number,
      time=snapshot.timestamp.elapsed_seconds,
      image=image,
      location=(
        transform.location.x,
        transform.location.y,
        transform.location.z,
      ),
      yaw=transform.rotation.yaw,
      velocity=(velocity.x, velocity.y, velocity.z),
      collisions=self._actors.collisions.read(number),
      control=applied,
    )

  def _read_image(self, number):
    """Images of all cameras, joined along the channels."""
    size = self._config['x_res'], self._config['y_res']
    shrink = sensors.SENSORS[self._config['use_sensor']].shrink
    images = [shrink(x.read(number), *size) for x in self._actors.cameras]
    return np.concatenate(images, -1)

  def _disconnect(self):
    """Leave the server as it was found, as far as it still answers."""
    client, world, original = self._client, self._world, self._original
    actors, manager = self._actors, self._manager
    self._forget()
    if client:
      # Do not wait for a dead server at every call.
      with contextlib.suppress(RuntimeError):
        client.set_timeout(2.0)
        client.get_server_version()
        if actors:
          actors.destroy()
        if manager and self._manager_claim:
          manager.set_synchronous_mode(False)
          manager.shut_down()
          self._manager_claim.lock.release()
          self._manager_claim = None
        if original:
          world.apply_settings(original)
          if original.synchronous_mode:
            world.tick(2.0)
