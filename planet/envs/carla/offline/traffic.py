"""Other vehicles and pedestrians of the offline world, vectorised.

Vehicles keep their lane and distance by the intelligent driver model (Treiber,
Hennecke and Helbing, 2000). They brake for the ego vehicle and pedestrians but
ignore crossing traffic in junctions.
"""

import math

import numpy as np

from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import sensors
from planet.envs.carla.offline import boxes as boxes_lib
from planet.envs.carla.offline import vehicle as vehicle_lib

CAR = (2.3, 0.95, 1.5)
WALKER = (0.25, 0.25, 1.75)
_DESIRED, _ACCELERATION, _BRAKING, _HARDEST = 6.0, 1.5, 2.5, 8.0
_GAP, _HEADWAY, _SIGHT = 2.0, 1.5, 30.0
_SIDEWAYS = 2.2
_SAME_WAY = 0.3
_WALK = 1.2
_CROSS_RATE = 0.01
_CURB = 0.75
_PAINTS = np.array(
  [(190, 40, 40), (40, 70, 170), (220, 220, 225), (60, 60, 64), (200, 150, 40)],
  np.float64,
)
_CLOTHES = np.array([(220, 60, 120), (60, 160, 90), (240, 200, 60)], np.float64)


class Roads:
  """Resampled lanes, to look up many poses at once.

  Args:
    lanes: `Lanes` of the map.
  """

  def __init__(self, lanes: lanes_lib.Lanes):
    self.following = lanes.following
    self.length = np.array([x.length for x in lanes.all])
    self.width = np.array([x.width for x in lanes.all])
    counts = np.ceil(self.length).astype(int) + 1
    self._step = self.length / (counts - 1)
    self._base = np.concatenate([[0], np.cumsum(counts)[:-1]])
    self._points = np.concatenate(
      [
        np.stack([lane.at(x) for x in np.linspace(0, lane.length, count)])
        for lane, count in zip(lanes.all, counts)
      ]
    )
    self._count = counts
    streets = [n for n, x in enumerate(lanes.all) if x.junction is None]
    self.curbs = np.array([n for n in streets if lanes.all[n].curb], int)
    self.streets = np.array(streets, int)

  def poses(
    self, lane: np.ndarray, arc: np.ndarray, right: np.ndarray | None = None
  ) -> np.ndarray:
    """Return x, y and heading [n, 3] on lanes, shifted to the right."""
    place = arc / self._step[lane]
    index = np.minimum(place.astype(int), self._count[lane] - 2)
    share = (place - index)[:, None]
    index = index + self._base[lane]
    poses = self._points[index] * (1 - share) + self._points[index + 1] * share
    if right is not None:
      poses[:, 0] -= np.sin(poses[:, 2]) * right
      poses[:, 1] += np.cos(poses[:, 2]) * right
    return poses


class Traffic:
  """Vehicles and pedestrians of one episode.

  Args:
    roads: `Roads` of the map.
    ego: x and y of the ego vehicle; others start at least 12 m away.
    num_vehicles, num_pedestrians: Maximum numbers.
    random: NumPy generator.
  """

  def __init__(
    self,
    roads: Roads,
    ego: tuple[float, float],
    num_vehicles: int,
    num_pedestrians: int,
    random: np.random.Generator,
  ):
    self._roads = roads
    self._random = random
    self._place_vehicles(ego, num_vehicles)
    count = num_pedestrians if len(roads.curbs) else 0
    self._walk_lane = roads.curbs[random.integers(0, len(roads.curbs), count)]
    self._walk_arc = random.uniform(0, 1, count) * roads.length[self._walk_lane]
    self._walk_way = random.choice([-1.0, 1.0], count)
    self._curb = roads.width[self._walk_lane] / 2 + _CURB
    self._side = self._curb.copy()
    self._target = self._side.copy()
    self.cars = self._build(CAR, _PAINTS, len(self._arc), 'Car')
    self.walkers = self._build(WALKER, _CLOTHES, count, 'Pedestrians')
    self._update()

  def step(
    self, ego: tuple[float, float, float], speed: float, dt: float
  ) -> None:
    """Move all vehicles and pedestrians.

    Args:
      ego: x, y and heading of the ego vehicle.
      speed: Speed of the ego vehicle in m/s.
      dt: Duration of the step in seconds.
    """
    if len(self.cars):
      self._drive(ego, speed, dt)
    if len(self.walkers):
      self._walk(dt)
    self._update()

  @property
  def velocities(self) -> np.ndarray:
    """Velocities in m/s, [vehicles + pedestrians, 2]."""
    yaw = self.cars.pose[:, 2]
    cars = self._speed[:, None] * np.stack([np.cos(yaw), np.sin(yaw)], 1)
    return np.concatenate([cars, np.zeros((len(self.walkers), 2))])

  def _place_vehicles(self, ego, count):
    lanes: list[int] = []
    arcs: list[float] = []
    taken = [ego]
    streets = self._roads.streets
    chance = self._roads.length[streets] / self._roads.length[streets].sum()
    for _ in range(20 * count):
      if len(lanes) == count:
        break
      lane = streets[self._random.choice(len(streets), p=chance)]
      arc = self._random.uniform(0, self._roads.length[lane])
      pose = self._roads.poses(np.array([lane]), np.array([arc]))[0]
      if min(math.dist(pose[:2], x) for x in taken) > 12:
        lanes.append(lane)
        arcs.append(arc)
        taken.append(tuple(pose[:2]))
    self._lane = np.array(lanes, int)
    self._arc = np.array(arcs, float)
    self._speed = self._random.uniform(2, _DESIRED, len(arcs))

  def _build(self, size, colors, count, label):
    choice = self._random.integers(0, len(colors), count)
    return boxes_lib.Boxes(
      np.zeros((count, 3)),
      np.tile(np.array(size), (count, 1)),
      colors[choice],
      np.full(count, label == 'Car'),
      np.full(count, sensors.LABELS[label], np.uint8),
    )

  def _update(self):
    self.cars.pose = self._roads.poses(self._lane, self._arc)
    self.walkers.pose = self._roads.poses(
      self._walk_lane, self._walk_arc, self._side
    )

  def _drive(self, ego, ego_speed, dt):
    speed = self._speed
    gap, lead = self._find_leaders(ego, ego_speed)
    wanted = speed * _HEADWAY + speed * (speed - lead) / (
      2 * math.sqrt(_ACCELERATION * _BRAKING)
    )
    wanted = _GAP + np.maximum(wanted, 0)
    change = 1 - (speed / _DESIRED) ** 4 - (wanted / gap) ** 2
    change = np.maximum(_ACCELERATION * change, -_HARDEST)
    self._speed = np.maximum(speed + change * dt, 0.0)
    self._arc += self._speed * dt
    for index in np.flatnonzero(self._arc > self._roads.length[self._lane]):
      self._enter_next(index)

  def _find_leaders(self, ego, ego_speed):
    """Return distance in meters and speed of the leaders, [vehicles] each."""
    poses = np.concatenate([self.cars.pose, [ego], self.walkers.pose])
    count = len(self.cars)
    yaw = self.cars.pose[:, 2]
    cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
    east = poses[:, 0] - poses[:count, :1]
    south = poses[:, 1] - poses[:count, 1:2]
    ahead = east * cos + south * sin
    side = np.abs(south * cos - east * sin)
    same_way = cos * np.cos(poses[:, 2]) + sin * np.sin(poses[:, 2])
    # The ego vehicle may stand at an angle.
    own = np.abs(same_way[:, count])
    across = np.sqrt(np.maximum(0, 1 - own**2))
    half_length, half_width, _ = vehicle_lib.EXTENT
    clear = np.full(side.shape, _SIDEWAYS)
    clear[:, count] = 1.2 + across * half_length + own * half_width
    same_way[:, count:] = 1
    blocked = (side < clear) & (same_way > _SAME_WAY)
    blocked &= (ahead > 0.1) & (ahead < _SIGHT)
    ahead[~blocked] = np.inf
    leader = ahead.argmin(1)
    rows = np.arange(count)
    reach = np.full(len(poses), CAR[0])
    reach[count:] = WALKER[0]
    gap = ahead[rows, leader] - CAR[0] - reach[leader]
    is_ego = leader == count
    if is_ego.any():
      tip = own * half_length + across * half_width
      gap[is_ego] += (reach[leader] - tip)[is_ego]
    speeds = np.zeros(len(poses))
    speeds[:count] = self._speed
    lead = speeds[leader] * same_way[rows, leader]
    lead[is_ego] = (
      ego_speed * (cos * math.cos(ego[2]) + sin * math.sin(ego[2]))[is_ego, 0]
    )
    return np.maximum(gap, 0.1), lead

  def _enter_next(self, index):
    lane = self._lane[index]
    self._arc[index] -= self._roads.length[lane]
    choices = self._roads.following[lane]
    if choices:
      lane = choices[self._random.integers(len(choices))]
      self._arc[index] = min(self._arc[index], self._roads.length[lane])
    else:
      # The road ends; restart at a random lane.
      streets = self._roads.streets
      lane = streets[self._random.integers(len(streets))]
      self._arc[index] = 0.0
    self._lane[index] = lane

  def _walk(self, dt):
    count = len(self.walkers)
    cross = self._random.random(count) < _CROSS_RATE * dt
    if cross.any():
      over = -3 * self._roads.width[self._walk_lane] / 2 - _CURB
      other = np.where(self._target > 0, over, self._curb)
      self._target = np.where(cross, other, self._target)
    left = self._target - self._side
    crossing = np.abs(left) > 1e-6
    self._side += np.clip(left, -_WALK * dt, _WALK * dt)
    self._walk_arc += np.where(crossing, 0.0, self._walk_way * _WALK * dt)
    length = self._roads.length[self._walk_lane]
    outside = (self._walk_arc < 0) | (self._walk_arc > length)
    self._walk_way = np.where(outside, -self._walk_way, self._walk_way)
    self._walk_arc = np.clip(self._walk_arc, 0, length)
