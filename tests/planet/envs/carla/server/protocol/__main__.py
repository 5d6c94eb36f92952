"""Run a server.

  python -m tests.planet.envs.carla.server.protocol -carla-rpc-port=2000

Without a port it takes a free one. Other flags of Unreal are ignored. Prints
the port when it listens, and ends when it is killed. `handle.OPTIONS` names the
variable with what tests want otherwise.
"""

import contextlib
import gzip
import json
import os
import random
import re
import socket
import sys
import threading

from tests.planet.envs.carla.server.protocol import (
  calls,
  faults,
  handle,
  navmesh,
  streams,
  world,
)

_PLACES = [(float(x), 31.75, 0.0) for x in range(-40, 50, 10)]
_PLACES += [(float(x), -31.75, 180.0) for x in range(-40, 50, 10)]
# Of the map `loop`: places on both straights, and the ground beside one.
_DEFAULTS = {
  'map': 'planet/envs/carla/maps/loop.xodr',
  'points': [[[x, y, 0.5], [0.0, yaw, 0.0]] for x, y, yaw in _PLACES],
  'ground': [-60.0, 20.0, 60.0, 45.0],
  'town': 'Town02',
  'faults': {},
}
_TOWNS = 'Town01', 'Town01_Opt', 'Town02'


def main(flags):
  options = _DEFAULTS | json.loads(os.environ.get(handle.OPTIONS, '{}'))
  port = re.search(r'-carla-rpc-port=(\d+)', ' '.join(flags))
  port, sockets = _listen(int(port[1]) if port else None)
  switches = faults.Faults()
  switches.set(options['faults'])
  is_packed = options['map'].endswith('.gz')
  with (gzip.open if is_packed else open)(options['map'], 'rt') as file_:
    maps = dict.fromkeys(_TOWNS, file_.read())
  ground = options['ground']
  mesh = ground and navmesh.make(*ground)
  outlets = streams.Streams(port + 1, switches)
  simulation = calls.Simulation(
    world.World(outlets, switches, options['town'], options['points']),
    outlets,
    switches,
    maps,
    {f'Carla/Maps/Nav/{town}.bin': mesh for town in maps if mesh},
  )
  # Before anybody is answered, as tests read it afterwards.
  print(port, *flags, flush=True)
  for listener, serve in zip(sockets, (simulation.serve, outlets.serve)):
    _start(_accept, listener, serve)
  simulation.run()


def _listen(port):
  """Return a port, and sockets for it and the next one."""
  while True:
    first = port or random.randrange(20000, 32000, 10)
    try:
      return first, [
        socket.create_server(('127.0.0.1', first + x)) for x in range(2)
      ]
    except OSError:
      if port:
        raise


def _accept(listener, serve):
  while True:
    _start(_serve, serve, listener.accept()[0])


def _serve(serve, connection):
  with contextlib.suppress(OSError):
    serve(connection)


def _start(function, *args):
  threading.Thread(target=function, args=args, daemon=True).start()


if __name__ == '__main__':
  main(sys.argv[1:])
