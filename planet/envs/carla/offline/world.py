"""Offline world: OpenDRIVE roads, simple cars and a software camera."""

import logging
import math
from typing import Any

import numpy as np

from planet.envs.carla import backend as backend_lib
from planet.envs.carla import measure, places, roads
from planet.envs.carla import sensors as sensors_lib
from planet.envs.carla.offline import boxes as boxes_lib
from planet.envs.carla.offline import scenery, sensors, texture
from planet.envs.carla.offline import traffic as traffic_lib
from planet.envs.carla.offline import vehicle as vehicle_lib
from planet.envs.carla.offline import weather as weather_lib

_SPAWN_EVERY = 8.0
# Meters of lane per vehicle.
_ROOM = 20
_KINDS = {
  sensors_lib.LABELS['Car']: 'vehicle',
  sensors_lib.LABELS['Pedestrians']: 'walker',
}


class OfflineBackend(backend_lib.Backend):
  """Flat world on an OpenDRIVE map.

  Equal seeds and actions give identical episodes, including images.
  """

  name = 'offline'

  def open(self, config: dict[str, Any]) -> None:
    self.map = roads.load(config['map'])
    self._dt = config['dt']
    self._cameras = sensors.Cameras(config)
    self._ground = texture.Texture(self.lanes)
    self._roads = traffic_lib.Roads(self.lanes)
    self._scenery = scenery.place(self.lanes)

  def spawn_points(self) -> list[places.Pose]:
    return [
      (x, y, 0.0, math.degrees(yaw))
      for x, y, yaw in self.lanes.spread(_SPAWN_EVERY)
    ]

  def reset(self, episode: backend_lib.Episode) -> backend_lib.Frame:
    self._random = np.random.default_rng(episode.seed)
    x, y, _, yaw = episode.start
    self._car = vehicle_lib.Bicycle(x, y, math.radians(yaw))
    self._look = weather_lib.make(episode.weather)
    self._traffic = traffic_lib.Traffic(
      self._roads,
      (x, y),
      self._clip(episode.num_vehicles),
      episode.num_pedestrians,
      self._random,
    )
    self._count = 0
    self._contacts: dict[int, int] = {}
    return self._observe([], backend_lib.Control())

  def tick(self, control: backend_lib.Control) -> backend_lib.Frame:
    car = self._car
    car.step(*control, self._dt)
    pose = car.x, car.y, car.yaw
    self._traffic.step(pose, car.speed, self._dt)
    self._count += 1
    return self._observe(self._collide(), control)

  def others(self) -> list[places.Point]:
    return [tuple(x) for x in self._traffic.cars.pose[:, :2].tolist()]

  @property
  def obstacles(self) -> boxes_lib.Boxes:
    """Boxes of vehicles, pedestrians and scenery, in this order."""
    parts = [self._traffic.cars, self._traffic.walkers, self._scenery]
    return boxes_lib.join(parts)

  def render(self) -> np.ndarray | None:
    """Return the camera image, uint8 [height, width, channels], or None."""
    pose = self._car.x, self._car.y, self._car.yaw
    return self._cameras.render(
      pose, self._ground, self._look, self.obstacles, self._random
    )

  def _clip(self, wanted):
    """Return the wanted number of vehicles, or fewer if the map is small."""
    count = min(wanted, int(self.lanes.total_length // _ROOM))
    if count < wanted:
      logging.getLogger(__name__).info(
        'The map has room for %d of %d vehicles.', count, wanted
      )
    return count

  def _observe(self, collisions, control):
    car = self._car
    return backend_lib.Frame(
      number=self._count,
      image=self.render(),
      location=(car.x, car.y, 0.0),
      yaw=math.degrees(car.yaw),
      velocity=car.velocity + (0.0,),
      collisions=collisions,
      control=control,
    )

  def _collide(self):
    """Stop at obstacles; return new contacts."""
    car, boxes = self._car, self.obstacles
    hits, ways = boxes_lib.overlap(
      (car.x, car.y, car.yaw), vehicle_lib.EXTENT, boxes.pose, boxes.size
    )
    if not len(hits):
      return []
    velocities = self._traffic.velocities
    began = []
    for index, way in zip(hits.tolist(), ways):
      car.x += way[0]
      car.y += way[1]
      if measure.begins(self._contacts, index, self._count):
        kind = _KINDS.get(int(boxes.label[index]), 'other')
        other = velocities[index] if index < len(velocities) else (0.0, 0.0)
        relative = math.dist(car.velocity, other)
        impulse = vehicle_lib.MASS * max(relative, 1.0)
        began.append(backend_lib.Collision(kind, impulse, index))
        car.speed /= 2
      else:
        # Limit the speed while the car pushes against the obstacle.
        car.speed = min(car.speed, 1.0)
    return began
