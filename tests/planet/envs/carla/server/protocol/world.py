"""State of the world: actors, settings, time, and what sensors see."""

import dataclasses
import math
import random
import time

from tests.planet.envs.carla.server.protocol import blueprints, messages

# Without a fixed step, a frame takes this many seconds.
_FREE_STEP = 0.05
# Places of `WorldSettings` in the list that is sent.
_SYNCHRONOUS, _FIXED_STEP = 0, 2
_SETTINGS = (
  [False, False, [False], True, 0.01, 10]
  + [0.0, False, 3000.0, 2000.0, True]
)  # fmt: skip
_NOON = [5.0, 0, 0, 10.0, 0, 45.0, 2.0, 0.75, 0.1, 0, 1.0, 0.03, 0.0331, 0.0]
_CLOUDINESS, _SUN_ALTITUDE = 0, 5
_WALL = [0, 0, [0, 'static.wall', []], [[0.0] * 3] * 3, b'', b'']
_CAMERAS = {
  'sensor.camera.rgb': messages.RGB,
  'sensor.camera.depth': messages.DEPTH,
  'sensor.camera.semantic_segmentation': messages.SEMANTIC,
}
_GRAVITY, _WHEELBASE, _TOP_SPEED = 9.81, 2.8, 20.0
# Acceleration to the right of a vehicle that is hit while it stands.
_PUSH = 20.0


class NotFoundError(RuntimeError):
  """There is no actor with a number."""


@dataclasses.dataclass
class Actor:
  """Vehicle, walker, controller or sensor.

  Attributes:
    id: Number.
    definition: Description with which it was spawned.
    position: x, y and z in meters.
    rotation: Pitch, yaw and roll in degrees.
    parent: Number of the actor that it is attached to, or 0.
    stream: Number of its stream, or 0.
    velocity: Meters per second, x, y and z.
    turn: Degrees per second.
    control: Throttle, steer, brake, hand brake, reverse, manual, gear.
  """

  id: int
  definition: list
  position: list[float]
  rotation: list[float]
  parent: int = 0
  stream: int = 0
  velocity: list[float] = dataclasses.field(default_factory=lambda: [0.0] * 3)
  turn: float = 0.0
  control: list = dataclasses.field(
    default_factory=lambda: [0.0] * 3 + [False] * 3 + [0]
  )
  age: int = 0
  is_engaged: bool = False

  @property
  def type(self):
    return self.definition[1]

  @property
  def kind(self):
    return self.type.partition('.')[0]

  @property
  def is_vehicle(self):
    return self.kind == 'vehicle'

  @property
  def attributes(self):
    return {name: value for name, _, value in self.definition[2]}

  def move(self, dt, faults):
    """Fall to the ground at height 0, and drive like a bicycle."""
    if not self.is_vehicle:
      return
    throttle, steer, brake, _, _, is_manual, gear = self.control
    self.age += 1
    self.is_engaged |= is_manual and gear > 0
    if self.age <= faults.neutral and not self.is_engaged:
      throttle = 0.0
    x, y, z = self.position
    fall = self.velocity[2] - _GRAVITY * dt
    z = max(z + fall * dt, -math.inf if faults.no_ground else 0.0)
    if faults.nan:
      x = math.nan
    yaw = math.radians(self.rotation[1])
    speed = self.velocity[0] * math.cos(yaw) + self.velocity[1] * math.sin(yaw)
    speed += (4 * throttle - 8 * brake - 0.05) * dt
    speed = min(max(speed, 0.0), _TOP_SPEED)
    self.turn = math.degrees(speed * math.tan(steer) / _WHEELBASE)
    self.rotation[1] += self.turn * dt
    forward = speed * math.cos(yaw), speed * math.sin(yaw)
    self.position = [x + forward[0] * dt, y + forward[1] * dt, z]
    self.velocity = [*forward, fall if z else 0.0]

  def bump(self, dt):
    """Stop at an obstacle, or be pushed aside by it while standing."""
    is_standing = math.hypot(*self.velocity) < _PUSH * dt
    yaw = math.radians(self.rotation[1])
    side = _PUSH * dt * is_standing
    self.velocity = [-side * math.sin(yaw), side * math.cos(yaw), 0.0]


class World:
  """Everything that there is, which changes by calls and ticks.

  Args:
    streams: `Streams`.
    faults: `Faults`.
    points: Spawn points as [[x, y, z], [pitch, yaw, roll]].

  Attributes:
    destroyed: Types of the actors that clients have destroyed, in order.
    managers: Hosts of traffic managers by port.
    hits: List of [type of actor, impulse, number of ticks] of contacts that
      collision sensors feel from the next tick on; other types are walls.
  """

  def __init__(self, streams, faults, town, points):
    self._streams, self._faults = streams, faults
    self.town, self.points = town, points
    self.episode, self.frame, self.seconds = 1, 100, 0.0
    self.settings, self.weather = list(_SETTINGS), list(_NOON)
    self.actors, self._last = {}, 20
    self.managers, self.hits = {}, []
    self.destroyed = []
    self._pixels = {}

  @property
  def is_synchronous(self):
    return self.settings[_SYNCHRONOUS] and not self._faults.free

  @property
  def dt(self):
    fixed = (self.settings[_FIXED_STEP] + [_FREE_STEP])[1]
    return self._faults.other_dt or fixed

  def load(self, town, reset):
    """Show a town without actors, and with the default settings if wanted."""
    self.town = town
    self.episode += 1
    for number in list(self.actors):
      self._forget(number)
    if reset:
      self.settings = list(_SETTINGS)

  def tick(self):
    """Move time on, and send what sensors have seen."""
    self.frame += 1
    self.seconds += self.dt
    for actor in self.actors.values():
      actor.move(self.dt, self._faults)
      if self.hits and actor.type == 'sensor.other.collision':
        self.find(actor.parent).bump(self.dt)
    state = messages.pack_world(
      self.episode, time.time(), self.dt, self.actors.values()
    )
    self._send(1, messages.WORLD, [0.0] * 6, state)
    for actor in list(self.actors.values()):
      if actor.type in _CAMERAS:
        self._expose(actor)
      elif actor.type == 'sensor.other.collision':
        self._collide(actor)
    self.hits = [[*hit, n - 1] for *hit, n in self.hits if n > 1]

  def spawn(self, definition, transform, parent=0):
    """Put an actor into the world and return it.

    Raises:
      RuntimeError: If its place is taken or its parent does not exist.
    """
    if parent and parent not in self.actors:
      raise RuntimeError('unable to attach actor: parent actor not found')
    position, rotation = ([float(x) for x in part] for part in transform)
    actor = Actor(self._last + 1, definition, position, rotation, parent)
    if actor.kind in blueprints.SIZES and self._is_taken(actor):
      raise RuntimeError('Spawn failed because of collision at spawn position')
    self._last += 1
    if actor.kind == 'sensor':
      actor.stream = self._streams.open()
    self.actors[actor.id] = actor
    return actor

  def destroy(self, number):
    """Take out an actor and what is attached to it."""
    actor = self.find(number)
    for child in [x.id for x in self.actors.values() if x.parent == number]:
      self._forget(child)
    self._forget(number)
    self.destroyed.append(actor.type)

  def find(self, number):
    if number not in self.actors:
      raise NotFoundError(f'Actor Not Found. Actor Id: {number}')
    return self.actors[number]

  def describe(self, actor):
    return messages.describe(
      actor.id,
      actor.parent,
      actor.definition,
      blueprints.SIZES.get(actor.kind, (0.1, 0.1, 0.1)),
      blueprints.TAGS.get(actor.kind, b''),
      self._streams.token(actor.stream),
    )

  def look(self):
    """Return what tests want to know, as plain values."""
    return {
      'frame': self.frame,
      'town': self.town,
      'synchronous': self.is_synchronous,
      'dt': self.dt,
      'settings': self.settings,
      'weather': self.weather,
      'managers': sorted(self.managers),
      'destroyed': self.destroyed,
      'actors': [
        {
          'id': x.id,
          'type': x.type,
          'role': x.attributes.get('role_name', ''),
          'position': x.position,
        }
        for x in list(self.actors.values())
      ],
    }

  def _is_taken(self, actor):
    near = 4.0 if actor.is_vehicle else 0.5
    return self._faults.take('blocked') or any(
      math.dist(x.position[:2], actor.position[:2]) < near
      for x in self.actors.values()
      if x.kind in blueprints.SIZES
    )

  def _forget(self, number):
    actor = self.actors.pop(number)
    self._streams.close(actor.stream)

  def _send(self, stream, sensor, pose, data, delay=0.0):
    message = messages.pack_frame(sensor, self.frame, self.seconds, pose, data)
    self._streams.send(stream, message, delay)

  def _pose(self, sensor):
    parent = self.actors.get(sensor.parent, sensor)
    return [*parent.position, *parent.rotation]

  def _expose(self, camera):
    if not self._streams.is_heard(camera.stream):
      return
    if self._faults.take('lost_images'):
      return
    attributes = camera.attributes
    width, height = (int(attributes[f'image_size_{x}']) for x in 'xy')
    rows = height - self._faults.image_rows
    image = messages.pack_image(
      width,
      rows if self._faults.honest_rows else height,
      float(attributes['fov']),
      self._render(camera, width * rows),
    )
    self._send(
      camera.stream,
      _CAMERAS[camera.type],
      self._pose(camera),
      image,
      self._faults.image_delay,
    )

  def _render(self, camera, count):
    """Return pixels, BGRA, that tell ticks, sides and weathers apart.

    Colors are uniform: the weather is in blue, the side of the camera in
    green, and the tick in red. Depths and classes are noise, always the same.
    """
    if camera.type == 'sensor.camera.rgb':
      light = 100 + self.weather[_SUN_ALTITUDE] - self.weather[_CLOUDINESS] / 2
      side = 20 + round(40 * camera.position[1])
      return bytes([round(light), side, self.frame % 200, 255]) * count
    if (camera.type, count) not in self._pixels:
      generator = random.Random(0)
      if camera.type == 'sensor.camera.depth':
        pixels = [generator.randbytes(3) + b'\xff' for _ in range(count)]
      else:
        pixels = [
          bytes([0, 0, generator.randrange(29), 255]) for _ in range(count)
        ]
      self._pixels[camera.type, count] = b''.join(pixels)
    return self._pixels[camera.type, count]

  def _collide(self, sensor):
    own = self.describe(self.actors[sensor.parent])
    for kind, impulse, _ in self.hits:
      others = [x for x in self.actors.values() if x.kind == kind]
      other = next((x for x in others if x.id != sensor.parent), None)
      data = messages.pack_collision(
        own, self.describe(other) if other else _WALL, [impulse, 0.0, 0.0]
      )
      self._send(
        sensor.stream,
        messages.COLLISION,
        self._pose(sensor),
        data,
        self._faults.collision_delay,
      )
