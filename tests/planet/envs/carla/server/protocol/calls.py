"""Calls: those of CARLA, and `test.*` for tests."""

import collections
import queue
import socket
import threading
import time

from tests.planet.envs.carla.server.protocol import (
  blueprints,
  faults,
  messages,
  streams,
  world,
)

# These return nothing, so that their errors are packed otherwise.
_WITHOUT_RESULT = (
  'apply_control_to_vehicle',
  'load_new_episode',
  'reset_all_traffic_lights',
  'set_actor_collisions',
  'set_actor_dead',
  'set_actor_simulate_physics',
  'set_weather_parameters',
)
# Change nothing here: calls about actors that have to exist, and others.
_OF_ACTORS = _WITHOUT_RESULT[3:6]
_UNUSED = {
  'get_vehicle_light_states': [],
  'query_lights_state': [],
  'reset_all_traffic_lights': None,
}
# Commands of batches.
_SPAWN, _DESTROY, _CONTROL, _WALK = 0, 1, 2, 7
# Seconds between the ticks of an asynchronous server.
_FREE_PAUSE = 0.03


class Simulation:
  """Carries out calls one after the other, and ticks.

  Args:
    state: `World`.
    outlets: `Streams`.
    switches: `Faults`.
    maps: Dict from names of towns to OpenDRIVE texts.
    files: Dict from paths to bytes, which clients download.
  """

  def __init__(self, state, outlets, switches, maps, files):
    self._world, self._streams, self._faults = state, outlets, switches
    self._maps, self._files = maps, files
    self._queue = queue.Queue()
    self._cues, self._town = 0, None
    self._counts, self._unknown = collections.Counter(), []
    self._lock = threading.Lock()

  def run(self):
    """Serve for ever."""
    time.sleep(self._faults.loading)
    while True:
      if self._world.is_synchronous:
        self._carry_out(None)
        due = self._cues > 0
        self._cues -= due
      else:
        limit = time.monotonic() + _FREE_PAUSE
        self._cues = 0
        while not self._world.is_synchronous and self._carry_out(limit):
          pass
        due = not self._world.is_synchronous
      if due:
        with self._lock:
          for _ in range(1 + self._faults.foreign_ticks):
            self._world.tick()

  def serve(self, connection):
    """Take calls from a connection until it ends."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    unpacker = messages.unpacker()
    while data := connection.recv(1 << 20):
      unpacker.feed(data)
      for _, number, method, args in unpacker:
        call = connection, number, method, args
        if method.startswith('test.'):
          with self._lock:
            self._answer(*call)
        elif method in faults.FAST:
          self._meet(*call)
        else:
          self._queue.put(call)

  def _carry_out(self, limit):
    """Carry out a call; returns whether there was one before a time."""
    try:
      left = limit and max(limit - time.monotonic(), 0)
      call = self._queue.get(timeout=left)
    except queue.Empty:
      return False
    self._meet(*call)
    if self._town:
      time.sleep(self._faults.load_seconds)
      with self._lock:
        self._world.load(*self._town)
      self._town = None
    return True

  def _meet(self, *call):
    """Carry out a call unless a fault prevents that."""
    if self._faults.meet(call[2]):
      with self._lock:
        self._answer(*call)

  def _answer(self, connection, number, method, args):
    is_void = method in _WITHOUT_RESULT
    self._counts[method] += 1
    try:
      value = self._call(method, args[1:])
      result = messages.nothing() if is_void else messages.success(value)
    except RuntimeError as error:
      fail = messages.nothing if is_void else messages.failure
      text = str(error)
      if isinstance(error, world.NotFoundError):
        text = f'Responding error from function {method}: {text}'
      result = fail(text)
    if method == 'apply_batch':
      result = value
    if args[:1] != [[True]]:
      try:
        connection.sendall(messages.pack_answer(number, result))
      except OSError:
        # The client has gone.
        connection.close()

  def _call(self, method, args):
    if method in _UNUSED:
      return _UNUSED[method]
    if method in _OF_ACTORS:
      return self._world.find(args[0])
    function = getattr(self, '_on_' + method.replace('.', '_'), None)
    if not function:
      self._unknown.append(method)
      raise RuntimeError(f'The stand-in has no {method}.')
    return function(*args)

  # For tests; the first argument is none of metadata, see `handle.Server`.

  def _on_test_look(self):
    return {
      **self._world.look(),
      'calls': dict(self._counts),
      'unknown': self._unknown,
    }

  def _on_test_set(self, values):
    self._faults.set(values)

  def _on_test_destroy(self, kind):
    found = [x for x in self._world.actors.values() if x.type.startswith(kind)]
    self._world.destroy(found[0].id)

  def _on_test_hit(self, *hits):
    self._world.hits += hits

  # What the client asks first.

  def _on_version(self):
    return self._faults.version

  def _on_get_available_maps(self):
    return [f'/Game/Carla/Maps/{town}' for town in self._maps]

  def _on_get_episode_info(self):
    return [self._world.episode, [self._streams.token(streams.WORLD_STREAM)]]

  def _on_get_map_info(self):
    return [f'Carla/Maps/{self._world.town}', self._world.points]

  def _on_get_map_data(self):
    return self._maps[self._world.town]

  def _on_get_required_files(self, folder):
    return [path for path in self._files if folder in path]

  def _on_request_file(self, path):
    return self._files[path]

  def _on_get_actor_definitions(self):
    return blueprints.list_definitions(self._faults.missing)

  # Time, town, and weather.

  def _on_get_episode_settings(self):
    return self._world.settings

  def _on_set_episode_settings(self, settings):
    self._world.settings = settings
    return self._world.frame

  def _on_tick_cue(self):
    self._cues += 1
    return self._world.frame + 1

  def _on_load_new_episode(self, name, reset, unused_layers):
    town = name.rpartition('/')[2]
    if town not in self._maps:
      raise RuntimeError(f"Map '{town}' not found")
    self._town = town, reset

  def _on_get_weather_parameters(self):
    return self._world.weather

  def _on_set_weather_parameters(self, weather):
    self._world.weather = weather

  # Actors.

  def _on_get_actors_by_id(self, numbers):
    actors = [self._world.actors.get(x) for x in numbers]
    return [self._world.describe(x) for x in actors if x]

  def _on_spawn_actor(self, definition, transform):
    return self._world.describe(self._world.spawn(definition, transform))

  def _on_spawn_actor_with_parent(
    self, definition, transform, parent, *unused_attachment
  ):
    actor = self._world.spawn(definition, transform, parent)
    return self._world.describe(actor)

  def _on_destroy_actor(self, number):
    self._world.destroy(number)
    return True

  def _on_get_sensor_token(self, stream):
    return [self._streams.token(stream)]

  def _on_apply_control_to_vehicle(self, number, control):
    self._world.find(number).control = list(control)[:7]

  def _on_get_actor_bounding_box(self, number):
    # Without an error, as threads of the client would not survive it.
    actor = self._world.actors.get(number)
    return self._world.describe(actor)[3] if actor else [[0.0] * 3] * 3

  def _on_apply_batch(self, commands, is_cue):
    results = []
    for command in commands:
      try:
        results.append(messages.success(self._apply(command)))
      except RuntimeError as error:
        results.append(messages.failure(str(error)))
    self._cues += is_cue
    return results

  def _apply(self, command, made=0):
    """Carry out a command of a batch; returns the number of its actor."""
    kind, body = command[0]
    if kind == _SPAWN:
      definition, transform, parent, *_, then = body
      actor = self._world.spawn(definition, transform, (parent + [0])[1])
      for following in then:
        self._apply(following, actor.id)
      return actor.id
    number = body[0] or made
    if kind == _DESTROY:
      self._world.destroy(number)
      return number
    actor = self._world.find(number)
    if kind == _CONTROL:
      actor.control = list(body[1])[:7]
    elif kind == _WALK:
      actor.position = list(body[1][0])
    return number

  # Traffic.

  def _on_is_traffic_manager_running(self, port):
    return port in self._world.managers

  def _on_get_traffic_manager_running(self, port):
    return [self._world.managers.get(port, ''), port]

  def _on_add_traffic_manager_running(self, manager):
    host, port = manager
    return self._world.managers.setdefault(port, host) == host

  def _on_destroy_traffic_manager(self, port):
    return self._world.managers.pop(port, None) is not None
