"""Test a CARLA server or the offline world.

Example:

  planet-carla-smoke --host 127.0.0.1 --port 2000 \\
      --episodes 3 --steps 100 --size 128 --out carla_smoke

Prints PASS or FAIL for each check and writes report.txt with versions, images
and a CSV file of measurements. Takes up to five minutes on a server. Exits with
code 1 if a check fails.
"""

import argparse
import contextlib
import functools
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from agents.envs import video
from agents.run import entry, files, log
from agents.tools.wrappers import Async
from planet.envs.carla import backend, env_config, policies, scenarios
from planet.envs.carla import env as env_lib
from planet.envs.carla.server import actors, connect, launch

POLICIES: dict[str, policies.Policy] = {
  'pure_pursuit': policies.PurePursuit(),
  'full_throttle': policies.straight_on(1),
}
_NO_ACTION = np.zeros(2, np.float32)


class Smoke:
  """Run checks and print their results.

  Args:
    args: Parsed command line.
    report: Text file for the results.

  Attributes:
    failed: Number of checks that failed.
  """

  def __init__(self, args: argparse.Namespace, report: TextIO):
    self._args, self._report = args, report
    self.failed = 0

  def run(self) -> int:
    """Run the selected checks; return the number that failed."""
    args = self._args
    self._print(f'{platform.platform()}, Python {platform.python_version()}')
    with contextlib.ExitStack() as stack:
      server: Any = self._launch() if args.launch else None
      if server:
        stack.enter_context(contextlib.closing(server))
      if args.backend == 'server':
        client = self._connect(server)
        town = client.get_world().get_map().name
        self._print(
          f'Server {client.get_server_version()}, package '
          f'{client.get_client_version()}, map {town}, quality {args.quality}'
        )
      self.check_episodes()
      self.check_weathers()
      self.check_traffic()
      if args.backend == 'server':
        self.check_loss(
          'a killed client',
          lambda env: os.kill(env.backend.pid, signal.SIGKILL),
          vehicles=5,
        )
        self.check_left_alone()
      if args.num_envs > 1:
        self.check_side_by_side()
      if args.kill_server:
        self.check_loss(
          'a lost server', lambda env: os.killpg(server.pid, signal.SIGKILL)
        )
    self._print(f'{self.failed} checks failed. Images are in {args.out}.')
    if self.failed:
      print(f'Please report the command and {self._report.name}.')
    return self.failed

  def check_episodes(self) -> None:
    """Drive and check ticks, images, speed and measurements."""
    args = self._args
    rows, sheet, contacts = [], [], 0
    with self._open_env() as env:
      for number in range(1, args.episodes + 1):
        env.reset()
        began = time.monotonic()
        frames, images = [env.frame.number], [env.render()]
        # Cars of CARLA may ignore the throttle in their first seconds.
        count = min(round(1 / env.dt), args.steps)
        way = 0.0
        for _ in range(args.steps):
          info = env.step(POLICIES[args.drive](env))[3]
          if 'step_error' in info:
            self._check('steps', False, 'a step failed, see above')
            return
          rows.append(info)
          if len(frames) <= count:
            way += info['forward_speed'] * env.dt
          frames.append(env.frame.number)
          images.append(env.render())
          contacts += env.damage.new
        name = f'episode {number}'
        rate = args.steps / (time.monotonic() - began)
        ticks = np.diff(frames)
        self._check(f'{name} ticks', (ticks == 1).all(), f'{rate:.0f} Hz')
        detail = f'{way:.1f} m in {count * env.dt:.1f} s'
        self._check(f'{name} moves at once', way > 0.3, detail)
        visible = all(x.dtype == np.uint8 and x.std() > 1 for x in images)
        self._check(f'{name} images', visible, images[0].shape)
        self._check(
          f'{name} motion is visible', (images[0] != images[-1]).any()
        )
        sheet.append(np.array(images))
    path = os.path.join(args.out, 'measurements.csv')
    log.write_table(path, rows[0], [x.values() for x in rows])
    path = os.path.join(args.out, 'episodes.png')
    video.write_png(path, video.contact_sheet(sheet))
    if args.drive == 'full_throttle':
      hits = sum(x['collided'] for x in rows)
      detail = f'{contacts} contacts, {hits} steps with collisions'
      self._check('contacts count once', 0 < contacts <= hits, detail)

  def check_weathers(self) -> None:
    """Check that images are bright enough in each weather."""
    with self._open_env() as env:
      start = env.backend.spawn_points()[0]
      for index, name in enumerate(scenarios.WEATHERS):
        wanted = backend.Episode(start, index, 0, 0, self._args.seed)
        light = env.backend.reset(wanted).image.mean()
        self._check(f'brightness {name}', light > 5, f'{light:.0f}')

  def check_traffic(self) -> None:
    """Check that other vehicles drive and stay away from the start."""
    with self._open_env(vehicles=10, pedestrians=10) as env:
      env.reset()
      before = np.array(env.backend.others()).reshape(-1, 2)
      self._check('traffic', len(before), f'{len(before)} vehicles')
      gaps = np.hypot(*(before - env.location[:2]).T)
      nearest = gaps.min(initial=np.inf)
      self._check('free start', nearest > 4, f'{nearest:.0f} m to the nearest')
      for _ in range(30):
        env.step(_NO_ACTION)
      after = np.array(env.backend.others()).reshape(-1, 2)
      same = len(after) == len(before)
      self._check('traffic moves', same and (abs(after - before) > 1).any())
      self._check('nobody hits a standing car', not env.damage.total)

  def check_loss(self, what: str, kill: Any, **config: Any) -> None:
    """Kill a process; check that the episode ends and the next one runs."""
    with self._open_env(**config) as env:
      env.reset()
      kill(env)
      _, _, done, info = env.step(_NO_ACTION)
      self._check(f'{what} ends the episode', done and 'step_error' in info)
      env.reset()
      info = env.step(_NO_ACTION)[3]
      self._check(f'the episode after {what} runs', 'step_error' not in info)

  def check_side_by_side(self) -> None:
    """Drive in several environments at once, each with its own server."""
    envs: list[Any] = []
    with contextlib.ExitStack() as stack:
      for index in range(self._args.num_envs):
        config = self._define_config(seed=index)
        make = functools.partial(env_lib.CarlaEnv, config)
        env = stack.enter_context(contextlib.closing(Async(make, 'process')))
        env.reset()
        envs.append(env)
      for _ in range(10):
        for promise in [x.step(np.ones(2, np.float32), False) for x in envs]:
          promise()
      images = {x.render().tobytes() for x in envs}
      self._check('side by side', len(images) == len(envs), len(envs))

  def check_left_alone(self) -> None:
    """Check that the killed client left no actors and the server ticks."""
    world = self._connect().get_world()
    roles = [x.attributes.get('role_name', '') for x in world.get_actors()]
    left = sum(x.startswith(actors.TAG) for x in roles)
    self._check('nothing is left', not left, f'{left} actors')
    free = not world.get_settings().synchronous_mode
    self._check('the server is asynchronous again', free)
    before = world.get_snapshot().frame
    time.sleep(1)
    self._check('the server ticks', world.get_snapshot().frame > before)

  def _launch(self):
    claim = connect.claim_ports(self._args.port, 3, 10)
    self._args.port = claim.port
    program = os.environ[connect.SERVER_VARIABLE]
    server = launch.Server(program, claim.port, self._complete())
    claim.lock.release()
    self._print(f'Launched on port {claim.port}, process {server.pid}')
    return server

  def _open_env(self, **changes):
    """Return a context manager that closes the environment."""
    return contextlib.closing(env_lib.CarlaEnv(self._define_config(**changes)))

  def _define_config(self, **changes: Any) -> dict[str, Any]:
    args = self._args
    config = {
      'backend': args.backend,
      'host': args.host,
      'port': args.port,
      'x_res': args.size,
      'y_res': args.size,
      'quality': args.quality,
      'server_log': args.out,
      'scenarios': args.scenario,
      'seed': args.seed,
    }
    if args.map:
      config['server_map' if args.backend == 'server' else 'map'] = args.map
    return {**config, **changes}

  def _connect(self, server=None):
    config = self._complete()
    address = connect.list_addresses(config)[0]
    return connect.wait_for_town(*address, config, server)

  def _complete(self):
    return env_config.complete(self._define_config())

  def _check(self, name, passed, detail=''):
    self.failed += not passed
    self._print(f'{"PASS" if passed else "FAIL"} {name} {detail}'.rstrip())

  def _print(self, line):
    print(line, flush=True)
    print(line, file=self._report)


def main(argv: Sequence[str] | None = None) -> int:
  """Run the selected checks; return the number that failed."""
  args = parse_args(argv)
  files.check_writable(args.out)
  path = os.path.join(args.out, 'report.txt')
  with open(path, 'w', buffering=1) as report:
    return Smoke(args, report).run()


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse and check the command line."""
  parser = entry.Parser(prog='planet-carla-smoke', description=__doc__)
  add = parser.add_argument
  text = 'world to test'
  add('--backend', choices=('server', 'offline'), default='server', help=text)
  add('--host', default='127.0.0.1', help='host of the server')
  add('--port', type='positive', default=2000, help='port of the server')
  add('--episodes', type='positive', default=3, help='number of episodes')
  add('--steps', type='positive', default=100, help='steps per episode')
  add('--size', type='positive', default=128, help='image size in pixels')
  text = 'folder for the report and images'
  add('--out', type='path', default='carla_smoke', help=text)
  add('--map', help='town; offline: loop, grid or a .xodr file')
  add('--scenario', default='LANE_KEEP', help='traffic, weather and routes')
  text = 'pure_pursuit follows the road, full_throttle hits what is ahead'
  add('--drive', choices=sorted(POLICIES), default='pure_pursuit', help=text)
  add('--quality', default='Epic', help='image quality, Epic or Low')
  add('--seed', type='seed', default=0, help='seed of the environments')
  add('--num-envs', type='positive', default=1, help='parallel environments')
  add('--launch', action='store_true', help='start a server: $CARLA_SERVER')
  add('--kill-server', action='store_true', help='test loss of that server')
  args = parser.parse_args(argv)
  if args.backend != 'server' and (args.launch or args.kill_server):
    parser.error('--launch and --kill-server need --backend server.')
  several = args.backend == 'server' and args.num_envs > 1
  if (args.kill_server or several) and not args.launch:
    parser.error(
      '--kill-server and --num-envs need --launch: this program only kills '
      'servers that it started, and each environment needs its own.'
    )
  if args.launch and not os.environ.get(connect.SERVER_VARIABLE):
    parser.error('--launch needs the path of CarlaUE4.sh in $CARLA_SERVER.')
  return args


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: int(main(argv) > 0))


if __name__ == '__main__':
  sys.exit(run())
