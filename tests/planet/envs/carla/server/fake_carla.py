"""A world with the interface of CARLA's client, as far as we use it.

Stands in for a server, which cannot run here. Plain data types and the map
are those of the real package. Everything that is asked of it is written down
in `log`; `lost` makes all calls fail like those to a killed server.
"""

import os
import time
import types

import carla

from agents.run import errors
from planet.envs.carla import roads
from planet.envs.carla.env import CarlaEnv
from planet.envs.carla.server import connect, isolated, sensors, world
from tests.planet.envs.carla.server.fake_town import Library, Map, expose

SETTINGS = (
  'synchronous_mode',
  'fixed_delta_seconds',
  'max_substeps',
  'max_substep_delta_time',
)
CONFIG = {
  'backend': 'server',
  'x_res': 32,
  'y_res': 32,
  'render_x_res': 40,
  'render_y_res': 36,
  'vehicles': 3,
  'pedestrians': 2,
  'seed': 0,
  'retries': 5,
  'retry_pause': 0.01,
}
TIMEOUT = 'time-out of 10000ms while waiting for the simulator'


class Simulator:
  """State of the pretended server."""

  def __init__(self, town='Town02'):
    self.town, self.frame, self.lost = town, 100, False
    self.log, self.actors, self.number = [], {}, 0
    self.settings = carla.WorldSettings()
    self.late, self.newer, self.events = False, False, []
    self.blocked, self.managers, self.generation = 0, {}, 0

  def check(self):
    if self.lost:
      raise RuntimeError(TIMEOUT)

  def restart(self):
    """Another server begins at the same address, with an empty world."""
    self.lost, self.generation = False, self.generation + 1
    self.actors.clear()
    self.settings = carla.WorldSettings()

  def note(self, *entry):
    self.check()
    self.log.append(entry)

  def make(self, blueprint, transform):
    self.number += 1
    actor = Actor(self, self.number, blueprint, transform)
    self.actors[actor.id] = actor
    return actor


class Actor:
  """Vehicle, walker, controller or sensor."""

  def __init__(self, simulator, number, blueprint, transform):
    self._simulator, self.id = simulator, number
    self.type_id, self.attributes = blueprint.id, dict(blueprint.attributes)
    self.transform, self.parent, self.callback = transform, None, None
    self.speed, self.made_at = 0.0, simulator.frame
    self.control, self.manager = carla.VehicleControl(), None
    self.bounding_box = types.SimpleNamespace(
      extent=carla.Vector3D(2.4, 1.0, 0.7)
    )

  def __getattr__(self, name):
    """Methods that only have to be written down."""
    if name not in ('start', 'go_to_location'):
      raise AttributeError(name)
    return lambda *args: self._simulator.note(name, self.id)

  def listen(self, callback):
    self.callback = callback

  def stop(self):
    self._simulator.note('stop', self.type_id)
    self.callback = None

  def destroy(self):
    assert self.callback is None, 'destroyed while it listens'
    self._simulator.note('destroy', self.type_id)
    self._simulator.actors.pop(self.id)

  def apply_control(self, control):
    self._simulator.check()
    self.speed = 5.0 * control.throttle
    self.control = control

  def get_control(self):
    """What was applied in the last tick, also by a traffic manager."""
    return self.control

  def set_autopilot(self, enabled, port):
    self._simulator.note('autopilot', port)
    self.manager = self._simulator.managers[port] if enabled else None

  def get_velocity(self):
    return self.transform.get_forward_vector() * self.speed

  def get_location(self):
    return self.get_transform().location

  def get_transform(self):
    """The pose, which clients know only after a tick: the origin until then."""
    if self._simulator.frame == self.made_at:
      return carla.Transform()
    return self.transform

  get_angular_velocity = lambda self: carla.Vector3D(0, 0, 1.5)  # noqa: E731


class World:
  def __init__(self, simulator):
    self._simulator = simulator
    self._is_known = False

  def tick(self, unused_timeout=10.0):
    simulator = self._simulator
    simulator.check()
    self._is_known = True
    simulator.frame += 1
    for actor in list(simulator.actors.values()):
      if actor.manager:
        steer = simulator.frame % 10 / 100
        actor.apply_control(carla.VehicleControl(0.4, steer))
      if actor.type_id.startswith('sensor.camera.') and actor.callback:
        expose(actor, simulator)
      elif actor.type_id == 'sensor.other.collision' and actor.callback:
        for kind, impulse in simulator.events:
          actor.callback(
            types.SimpleNamespace(
              frame=simulator.frame,
              other_actor=types.SimpleNamespace(type_id=kind),
              normal_impulse=carla.Vector3D(*impulse),
            )
          )
    simulator.events = []
    return simulator.frame

  def get_snapshot(self):
    simulator = self._simulator
    return types.SimpleNamespace(
      find=simulator.actors.get,
      timestamp=types.SimpleNamespace(elapsed_seconds=simulator.frame * 0.1),
    )

  def get_settings(self):
    self._simulator.check()
    result = carla.WorldSettings()
    for key in SETTINGS:
      setattr(result, key, getattr(self._simulator.settings, key))
    return result

  def apply_settings(self, settings):
    self._simulator.note('settings', settings.synchronous_mode)
    if settings.synchronous_mode and settings.substepping:
      # What the library warns of.
      longest = settings.max_substep_delta_time * settings.max_substeps
      assert 1 <= settings.max_substeps <= 16
      assert settings.fixed_delta_seconds <= longest
    self._simulator.settings = settings

  def get_map(self):
    return Map(self._simulator.town)

  def get_blueprint_library(self):
    return Library()

  def try_spawn_actor(self, blueprint, transform):
    if self._simulator.blocked:
      self._simulator.blocked -= 1
      return None
    return self.spawn_actor(blueprint, transform)

  def spawn_actor(self, blueprint, transform, attach_to=None):
    self._simulator.note('spawn', blueprint.id)
    actor = self._simulator.make(blueprint, transform)
    actor.parent = attach_to
    return actor

  def get_actor(self, number):
    return self._simulator.actors.get(number)

  def get_actors(self):
    """None are known before a tick, which only we make in synchronous mode."""
    if self._simulator.settings.synchronous_mode and not self._is_known:
      return []
    return list(self._simulator.actors.values())

  def get_random_location_from_navigation(self):
    return carla.Location(10, 36, 0)

  def wait_for_tick(self, unused_timeout):
    assert not self._simulator.settings.synchronous_mode

  def set_weather(self, weather):
    self._simulator.note('weather', weather.cloudiness)

  def set_pedestrians_seed(self, seed):
    self._simulator.note('walker seed', seed)


class Manager:
  """Traffic manager, which belongs to one start of a server."""

  def __init__(self, simulator, port):
    self._simulator, self._port = simulator, port
    self._generation = simulator.generation

  def check(self):
    """The library hands out what it has, and fails in threads of its own."""
    assert self._generation == self._simulator.generation, 'aborts'

  def set_synchronous_mode(self, value):
    self.check()
    self._simulator.note('manager', value)

  def set_global_distance_to_leading_vehicle(self, metres):
    self._simulator.note('distance', metres)

  def ignore_lights_percentage(self, actor, share):
    self._simulator.note('lights', actor.type_id, share)

  def set_random_device_seed(self, seed):
    self.check()
    self._simulator.note('manager seed', seed)

  def shut_down(self):
    self._simulator.note('manager shut down', self._port)
    self._simulator.managers.pop(self._port, None)


class Client:
  def __init__(self, simulator):
    self._simulator = simulator

  def set_timeout(self, seconds):
    pass

  def get_server_version(self):
    self._simulator.check()
    return '0.9.16'

  get_client_version = get_server_version

  def get_world(self):
    self._simulator.check()
    return World(self._simulator)

  def get_available_maps(self):
    return ['/Game/Carla/Maps/Town01', '/Game/Carla/Maps/Town02']

  def load_world(self, name, reset_settings):
    assert not reset_settings
    if self._simulator.settings.synchronous_mode:
      raise RuntimeError(TIMEOUT)
    self._simulator.note('load', name)
    self._simulator.town = name
    return World(self._simulator)

  def get_trafficmanager(self, port):
    managers = self._simulator.managers
    return managers.setdefault(port, Manager(self._simulator, port))

  def apply_batch_sync(self, batch, tick):
    """Carry out commands, which are functions here."""
    self._simulator.check()
    return [
      types.SimpleNamespace(actor_id=command(self._simulator), error='')
      for command in batch
    ]


class SpawnActor:
  """Command that makes an actor when it is called."""

  def __init__(self, blueprint, transform, parent=None):
    self._args = blueprint, transform

  def then(self, unused_command):
    return self

  def __call__(self, simulator):
    simulator.note('spawn', self._args[0].id)
    return simulator.make(*self._args).id


class DestroyActor:
  """Takes an actor out when it is called."""

  def __init__(self, number):
    self._number = number

  def __call__(self, simulator):
    simulator.note('destroy', simulator.actors.pop(self._number).type_id)


command = types.SimpleNamespace(
  SpawnActor=SpawnActor,
  DestroyActor=DestroyActor,
  SetAutopilot=lambda *args: args,
  FutureActor=0,
)


def install(patch, simulators, aborting=False):
  """Put pretended servers into the place of real ones.

  Args:
    patch: Function like `setattr`.
    simulators: Dict from ports to `Simulator`.
    aborting: Whether the process ends with a server, as with the library.
  """

  def answer(host, port, *unused_args):
    if port not in simulators or simulators[port].lost:
      raise errors.UsageError('There is no CARLA server.')
    return Client(simulators[port])

  patch(roads, 'import_carla', package)
  patch(connect, 'connect', answer)
  original = sensors.Camera.__init__
  patch(
    sensors.Camera,
    '__init__',
    lambda self, actor, sensor: original(self, actor, sensor, 0.05),
  )
  if aborting:
    patch(Simulator, 'check', lambda self: self.lost and os.abort())


def make(simulators):
  """Backend of a process of its own, in which there are no managers yet."""
  for simulator in simulators.values():
    simulator.managers.clear()
  return world.ServerBackend()


def make_hanging():
  """Backend whose library never comes back from the tick of frame 110."""
  return make_aborting(hanging=True)


def make_aborting(hanging=False):
  """Backend of a process that a dying server aborts: at frame 110."""
  simulator = Simulator()
  install(setattr, {2000: simulator}, aborting=True)
  tick = World.tick

  def tick_or_die(world, *args):
    is_last = simulator.frame == 109
    if is_last and hanging:
      time.sleep(60)
    simulator.lost = is_last
    return tick(world, *args)

  World.tick = tick_or_die
  return world.ServerBackend()


def make_env(config):
  """Environment on a server that aborts its client."""
  return AbortingEnv(config, isolated.IsolatedBackend(make_aborting))


class AbortingEnv(CarlaEnv):
  """Tells the number of the process of its client."""

  client_pid = property(lambda self: self.backend.pid)


def package():
  """Stands in for the module `carla`; what is not replaced is real."""
  names = {x: getattr(carla, x) for x in dir(carla) if not x.startswith('_')}
  return types.SimpleNamespace(**{**names, 'command': command})
