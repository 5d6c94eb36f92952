"""Vehicles, pedestrians and sensors of one episode on a server."""

import contextlib
import logging
import math
import random
import typing
from collections.abc import Callable, Sequence
from typing import Any

from planet.envs.carla import backend as backend_lib
from planet.envs.carla import places as places_lib
from planet.envs.carla import roads
from planet.envs.carla import sensors as sensors_lib
from planet.envs.carla.server import sensors

if typing.TYPE_CHECKING:
  import carla

TAG = 'reference_agents'
_TRIES = 50
_BATCH = 50


class Actors:
  """Actors that an episode adds to the world.

  Args:
    client: `carla.Client`.
    world: `carla.World`.
    config: Complete settings, see `env_config.complete`.
    tm_port: Port of the traffic manager, or None.
  """

  def __init__(
    self,
    client: 'carla.Client',
    world: 'carla.World',
    config: dict[str, Any],
    tm_port: int | None,
  ):
    self._carla = roads.import_carla()
    self._client, self._world = client, world
    self._config, self._tm_port = config, tm_port
    self.ego: Any = None
    self.cameras: list[sensors.Camera] = []
    self.collisions: Any = None
    self._ticks = 0
    self._sensors: list[Any] = []
    self._vehicles: list[Any] = []
    self._walkers: list[Any] = []
    self._controllers: list[Any] = []

  def spawn(
    self,
    episode: backend_lib.Episode,
    points: Sequence['carla.Transform'],
    tick: Callable[[int], Any],
  ) -> None:
    """Spawn all actors, starting with the ego vehicle.

    Args:
      episode: Request for the episode.
      points: Spawn points.
      tick: Function that advances by one step, given the number of ticks that
        were made here before.

    Raises:
      BackendError: If no spawn point is free for the ego vehicle.
      Unusable: If the server lacks blueprints or ground for pedestrians.
    """
    generator = random.Random(episode.seed)
    library = self._world.get_blueprint_library()
    points = list(points)
    generator.shuffle(points)
    own = self._spawn_ego(library, episode.start, points)
    free = [x for x in points if x.location.distance(own.location) > 12]
    self._spawn_vehicles(library, free, episode.num_vehicles, generator)
    self._spawn_walkers(library, episode.num_pedestrians, generator)
    self._attach_sensors(library)
    tick(self._ticks)
    for number in self._controllers:
      controller = self._world.get_actor(number)
      if controller:
        controller.start()
        goal = self._world.get_random_location_from_navigation()
        if goal:
          controller.go_to_location(goal)

  def hand_over(self, manager: 'carla.TrafficManager') -> None:
    """Let the traffic manager drive the ego vehicle."""
    self.ego.set_autopilot(True, self._tm_port)
    # Rewards ignore traffic lights, and episodes are short.
    manager.ignore_lights_percentage(self.ego, 100.0)

  def own(self) -> dict[str, int]:
    """Return the ids of the actors that every step needs, by their names."""
    names = [f'sensor {x.type_id.partition(".")[2]}' for x in self._sensors]
    ids = [x.id for x in self._sensors]
    return {'car': self.ego.id, **dict(zip(names, ids))}

  def places(self) -> list[places_lib.Point]:
    """Return the positions of the other vehicles at the last tick."""
    snapshot = self._world.get_snapshot()
    found = [snapshot.find(x) for x in self._vehicles]
    locations = [x.get_transform().location for x in found if x]
    found = [(x.x, x.y) for x in locations]
    return [x for x in found if all(map(math.isfinite, x))]

  def destroy(self) -> None:
    """Destroy all actors, sensors first; call this once."""
    for sensor in self._sensors:
      with contextlib.suppress(RuntimeError):
        sensor.stop()
    # Leave after the first time-out instead of waiting for every pedestrian.
    with contextlib.suppress(RuntimeError):
      for number in self._controllers:
        controller = self._world.get_actor(number)
        if controller:
          controller.stop()
    numbers = [x.id for x in self._sensors]
    numbers += self._controllers + self._walkers + self._vehicles
    if self.ego:
      numbers.append(self.ego.id)
    _destroy(self._client, numbers)

  def _spawn_ego(self, library, start, points):
    """Spawn the ego vehicle and return its pose, unknown before a tick."""
    x, y, z, yaw = start
    wanted = self._carla.Transform(
      self._carla.Location(x, y, z + 0.3), self._carla.Rotation(yaw=yaw)
    )
    blueprint = _define(library, self._config['ego_filter'], 'ego')
    places = [wanted, *points[:_TRIES]]
    for transform in places:
      try:
        self.ego = self._world.spawn_actor(blueprint, transform)
        return transform
      except RuntimeError as error:
        if 'collision' not in str(error):
          raise
    raise backend_lib.BackendError(
      f'None of {len(places)} spawn points is free for the ego vehicle.'
    )

  def _spawn_vehicles(self, library, points, count, generator):
    """Spawn vehicles in one batch; skip those without a free spawn point."""
    command, batch = self._carla.command, []
    cars = _list(library, 'vehicle.*') if count else []
    for transform in points[:count]:
      blueprint = _define(library, generator.choice(cars), 'traffic')
      batch.append(
        command.SpawnActor(blueprint, transform).then(
          command.SetAutopilot(command.FutureActor, True, self._tm_port)
        )
      )
    self._vehicles = self._apply(batch, count, 'vehicles')

  def _spawn_walkers(self, library, count, generator):
    command, batch = self._carla.command, []
    walkers = _list(library, 'walker.pedestrian.*') if count else []
    for _ in range(count):
      place = self._world.get_random_location_from_navigation()
      if place is None:
        continue
      blueprint = _define(library, generator.choice(walkers), 'walker')
      if blueprint.has_attribute('is_invincible'):
        blueprint.set_attribute('is_invincible', 'false')
      batch.append(command.SpawnActor(blueprint, self._carla.Transform(place)))
    if count and not batch:
      raise backend_lib.Unusable(
        f'The town {self._world.get_map().name} has no ground for the '
        f'{count} pedestrians (no navigation mesh); set pedestrians: 0 or load '
        'another town.'
      )
    self._walkers = self._apply(batch, count, 'pedestrians')
    blueprint = _define(library, 'controller.ai.walker', 'controller')
    batch = [
      command.SpawnActor(blueprint, self._carla.Transform(), number)
      for number in self._walkers
    ]
    self._controllers = self._apply(batch, len(batch), 'walker controllers')

  def _apply(self, batch, wanted, what):
    """Apply a batch and return the ids of spawned actors."""
    made = []
    if batch:
      self._ticks += 1
      responses = self._client.apply_batch_sync(batch, True)
      made = [x.actor_id for x in responses if not x.error]
    if len(made) < wanted:
      logging.getLogger(__name__).info(
        'Spawned %d of %d %s.', len(made), wanted, what
      )
    return made

  def _attach_sensors(self, library):
    config = self._config
    sensor = sensors_lib.SENSORS[config['use_sensor']]
    blueprint = _define(
      library,
      f'sensor.camera.{sensor.camera}',
      'camera',
      image_size_x=config['render_x_res'],
      image_size_y=config['render_y_res'],
      fov=config['fov'],
      sensor_tick=0.0,
    )
    timeout = config['image_timeout']
    for position in sensor.positions(config):
      actor = self._attach(blueprint, *position)
      self.cameras.append(sensors.Camera(actor, sensor, timeout))
    blueprint = _define(library, 'sensor.other.collision', 'collision')
    self.collisions = sensors.Collisions(self._attach(blueprint))

  def _attach(self, blueprint, *position):
    """Attach a sensor to the ego vehicle."""
    place = self._carla.Transform(self._carla.Location(*position))
    actor = self._world.spawn_actor(blueprint, place, attach_to=self.ego)
    self._sensors.append(actor)
    return actor


def destroy_leftovers(client: 'carla.Client', world: 'carla.World') -> bool:
  """Destroy the actors of an earlier run of this project.

  Args:
    client: `carla.Client`.
    world: `carla.World` after a tick.

  Returns:
    Whether there were any.
  """
  roles = {x.id: x.attributes.get('role_name', '') for x in world.get_actors()}
  ours = [x for x, role in roles.items() if role.startswith(TAG)]
  _destroy(client, ours)
  return bool(ours)


def _destroy(client, numbers):
  """Destroy actors in batches that do not exceed the client timeout."""
  command, failures = roads.import_carla().command.DestroyActor, []
  for first in range(0, len(numbers), _BATCH):
    batch = [command(x) for x in numbers[first : first + _BATCH]]
    responses = client.apply_batch_sync(batch, False)
    failures += [x.error for x in responses if x.error]
  if failures:
    logging.getLogger(__name__).warning(
      '%d of %d actors remain on the CARLA server: %s',
      len(failures),
      len(numbers),
      failures[0],
    )


def _list(library, pattern):
  """Return the names of blueprints."""
  found = [x.id for x in library.filter(pattern)]
  if not found:
    raise backend_lib.Unusable(
      f'The CARLA server has no blueprints {pattern}; reinstall it, or set '
      'vehicles: 0 and pedestrians: 0.'
    )
  return found


def _define(library, name, role, **attributes):
  """Return a blueprint with the role of this project and attributes."""
  attributes['role_name'] = f'{TAG}_{role}'
  try:
    blueprint = library.find(name)
    for key, value in attributes.items():
      blueprint.set_attribute(key, str(value))
  except (IndexError, ValueError) as error:
    raise backend_lib.Unusable(
      f'Cannot use the blueprint {name} of the CARLA server: {error}. Give a '
      'car that it has as ego_filter, or reinstall it.'
    ) from None
  return blueprint
