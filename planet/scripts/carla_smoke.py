"""Test a CARLA server, or the offline world.

Example:

  planet-carla-smoke --host 127.0.0.1 --port 2000 \\
      --episodes 3 --steps 100 --size 128 --out carla_smoke

Prints PASS or FAIL for each check and writes the same lines, with versions, to
report.txt, along with images and a CSV file of measurements. Takes up to five
minutes on a server. Exits with 1 if a check fails.
"""

import argparse
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.envs import video
from agents.run import entry, errors, files, log
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import birdseye, places, policies
from planet.envs.carla import env as env_lib
from planet.envs.carla.server import connect, launch
from planet.scripts import carla_checks

POLICIES: dict[str, Callable[[], Any]] = {
  'pure_pursuit': policies.PurePursuit,
  'full_throttle': lambda: policies.full_throttle,
  'stand_still': lambda: policies.stand_still,
  'random': lambda: policies.Uniform(0, (-0.2, 1)),
}


def main(argv: Sequence[str] | None = None) -> int:
  """Run all checks that were asked for; returns the number that failed."""
  args = parse_args(argv)
  files.check_writable(args.out)
  os.makedirs(args.out, exist_ok=True)
  report = carla_checks.Report(os.path.join(args.out, 'report.txt'))
  report.tell(f'{platform.platform()}, Python {platform.python_version()}')
  server = None
  try:
    if args.launch:
      args.port = launch.free_port(args.port)
      log = os.path.join(args.out, 'server.log')
      server = launch.Server(args.launch, args.port, log)
      report.check('launch', True, f'port {args.port}, process {server.pid}')
    if args.backend == 'server':
      carla_checks.tell_versions(args, report)
    check_episodes(args, report)
    check_traffic(args, report)
    if args.calibrate:
      calibrate(args, report)
    if args.backend == 'server':
      carla_checks.check_killed_client(args, report)
      carla_checks.check_turns(args, report)
      carla_checks.check_left_alone(args, report)
    if args.num_envs > 1:
      carla_checks.check_side_by_side(args, report)
    if args.kill_server:
      assert server, 'parse_args asks for --launch'
      carla_checks.check_recovery(args, report, server)
  finally:
    if server:
      server.close()
  report.tell(f'{report.failed} checks failed. Pictures are in {args.out}.')
  if report.failed:
    print(
      f'Please report {os.path.join(args.out, "report.txt")} with the command '
      'and what was printed between its lines.'
    )
  return report.failed


def check_episodes(
  args: argparse.Namespace, report: carla_checks.Report
) -> None:
  """Drive, and look at frames, images, speed and measurements."""
  env, watched = carla_checks.open_env(args)
  try:
    points = env.backend.spawn_points()
    report.check('spawn points', len(points) > 0, f'{len(points)}')
    rows, images, damages = [], [], 0
    for number in range(args.episodes):
      began, policy = time.time(), POLICIES[args.drive]()
      env.reset()
      shots = [env.render()]
      for _ in range(args.steps):
        _, _, _, info = env.step(policy(env))
        if 'step_error' in info:
          report.check('steps', False, 'a step failed, see above')
          return
        rows.append(info)
        shots.append(env.render())
        damages += env.new_damage
      rate = args.steps / (time.time() - began)
      check_frames(report, watched.frames, shots, number, rate)
      images.append(np.array(shots))
    write_results(args, rows, images)
    if args.drive == 'full_throttle':
      hits = sum(x['collided'] for x in rows)
      detail = f'{damages} contacts, {hits} steps with collisions'
      report.check('contacts count once', 0 < damages <= hits, detail)
    if args.drive == 'pure_pursuit':
      driven = sum(x['forward_speed'] for x in rows) * env.dt
      report.check('drives', driven > 0, f'{driven:.0f} m')
    if args.dump:
      write_map(args, env, points, report)
  finally:
    env.close()


def check_traffic(
  args: argparse.Namespace, report: carla_checks.Report
) -> None:
  """Other vehicles keep away from the start, and drive."""
  env, _ = carla_checks.open_env(args, vehicles=10, pedestrians=10)
  try:
    env.reset()
    before = np.array(env.backend.others())
    # Only servers have a traffic manager.
    port = getattr(env.backend, 'manager_port', None)
    report.check('traffic', len(before) > 0, f'{len(before)} vehicles')
    if port:
      listens = not connect.find_obstacle('127.0.0.1', port)
      report.check('the traffic manager listens', listens, f'port {port}')
    gaps = [math.dist(x, env.location[:2]) for x in env.backend.others()]
    nearest = min(gaps, default=math.inf)
    report.check('free start', nearest > 4, f'{nearest:.0f} m to the nearest')
    damage = False
    for _ in range(30):
      env.step(np.zeros(2, np.float32))
      damage = damage or env.new_damage
    after = np.array(env.backend.others())
    same = len(after) == len(before) > 0
    moved = same and bool((np.abs(after - before) > 1).any())
    report.check('traffic moves', moved)
    report.check('nobody hits a standing car', not damage)
  finally:
    began = time.time()
    env.close()
  seconds = time.time() - began
  report.check(
    'clean-up', seconds < env.seconds_to_close + 3, f'{seconds:.1f} s'
  )
  if port:
    ended = connect.find_obstacle('127.0.0.1', port)
    report.check('the traffic manager has ended', ended, f'port {port}')


def check_frames(
  report: carla_checks.Report,
  frames: list[backend_lib.Frame],
  images: list[np.ndarray],
  number: int,
  rate: float,
) -> None:
  """Ticks follow each other, and images are pictures."""
  name = f'episode {number + 1}'
  steps = np.diff([x.frame for x in frames])
  report.check(f'{name} ticks', bool((steps == 1).all()), f'{rate:.0f} Hz')
  fits = all(x.dtype == np.uint8 and x.std() > 1 for x in images)
  report.check(f'{name} images', fits, f'{images[0].shape}')
  moved = max(abs(x.velocity[0]) + abs(x.velocity[1]) for x in frames) > 1
  same = (images[0] == images[-1]).all()
  report.check(f'{name} motion is visible', not (moved and same))


def write_results(
  args: argparse.Namespace, rows: list[dict[str, Any]], images: list[np.ndarray]
) -> None:
  """Measurements as CSV, and a contact sheet."""
  path = os.path.join(args.out, 'measurements.csv')
  log.write_table(path, rows[0], [row.values() for row in rows])
  sheet = os.path.join(args.out, 'episodes.png')
  video.write_png(sheet, video.contact_sheet(images))


def write_map(
  args: argparse.Namespace,
  env: env_lib.CarlaEnv,
  points: list[places.Pose],
  report: carla_checks.Report,
) -> None:
  """Roads from above with spawn points and the places off the lanes."""
  view = birdseye.Map(env.backend.lanes)
  wrong = 0
  for x, y, z, yaw in points:
    off, other = env.surroundings.footprint((x, y, z), math.radians(yaw))
    wrong += off + other > 0
    view.dot(x, y, (220, 40, 40) if off + other else (40, 200, 60))
  video.write_png(os.path.join(args.out, 'map.png'), view.image)
  share = wrong / len(points)
  report.check('spawn points lie on lanes', share < 0.1, f'{share:.0%} do not')


def calibrate(args: argparse.Namespace, report: carla_checks.Report) -> None:
  """The table of the offline car, measured in this world."""
  env, watched = carla_checks.open_env(args, vehicles=0, pedestrians=0)
  try:
    env.reset()
    rows: dict[str, float | None] = {'0-30 km/h': None, '0-50 km/h': None}
    for _ in range(100):
      env.step(np.array([1, 0], np.float32))
      speed = 3.6 * np.hypot(*watched.frames[-1].velocity[:2])
      seconds = watched.frames[-1].time - watched.frames[0].time
      for limit in (30, 50):
        if speed >= limit and rows[f'0-{limit} km/h'] is None:
          rows[f'0-{limit} km/h'] = seconds
      if speed >= 50:
        break
    start, began = watched.frames[-1].location, watched.frames[-1].time
    for _ in range(100):
      env.step(np.array([-1, 0], np.float32))
      if np.hypot(*watched.frames[-1].velocity[:2]) < 0.1:
        break
    rows['braking time'] = watched.frames[-1].time - began
    rows['braking distance'] = math.dist(start, watched.frames[-1].location)
    for name, value in rows.items():
      text = 'never' if value is None else f'{value:.1f}'
      report.check(f'calibration {name}', value is not None, text)
  finally:
    env.close()


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse and check the command line."""
  parser = argparse.ArgumentParser(
    prog='planet-carla-smoke',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add(
    '--backend', choices=('server', 'offline'), default='server', help='world'
  )
  add('--host', default='127.0.0.1', help='host of the server')
  add('--port', type=int, default=2000, help='port of the server')
  add('--episodes', type=int, default=3, help='number of episodes')
  add('--steps', type=int, default=100, help='steps per episode')
  add('--size', type=int, default=128, help='image size in pixels')
  add('--out', default='carla_smoke', help='folder for the report and images')
  add('--map', default=None, help='town; offline: loop, grid or a .xodr file')
  add('--scenario', default='LANE_KEEP', help='traffic, weather and routes')
  add(
    '--drive',
    choices=sorted(POLICIES),
    default='pure_pursuit',
    help='scripted driver',
  )
  add('--seed', type=int, default=0, help='seed of the environments')
  add('--dump', action='store_true', help='draw the map and its spawn points')
  add(
    '--calibrate', action='store_true', help='measure acceleration and braking'
  )
  add('--num-envs', type=int, default=1, help='number of parallel environments')
  add(
    '--launch',
    action='store_true',
    help='start the server named by $CARLA_SERVER',
  )
  add(
    '--kill-server',
    action='store_true',
    help='kill the launched server to test recovery',
  )
  args = parser.parse_args(argv)
  if min(args.episodes, args.steps, args.num_envs) < 1:
    raise errors.UsageError(
      'Flags --episodes, --steps and --num-envs need at least 1.'
    )
  if args.launch or args.kill_server:
    if args.backend != 'server':
      raise errors.UsageError(
        'Flags --launch and --kill-server need --backend server.'
      )
  if args.kill_server and not args.launch:
    raise errors.UsageError(
      'Flag --kill-server needs --launch: only servers that this program has '
      'started are killed.'
    )
  args.launch = args.launch and _find_binary()
  if args.backend == 'server' and args.num_envs > 1 and not args.launch:
    raise errors.UsageError(
      'Flag --num-envs needs --launch, as each environment has a server.'
    )
  return args


def _find_binary():
  binary = os.environ.get(connect.SERVER_VARIABLE)
  if not binary:
    raise errors.UsageError(
      f'Flag --launch needs the variable {connect.SERVER_VARIABLE}, the path '
      'of CarlaUE4.sh.'
    )
  return binary


def run(argv: Sequence[str] | None = None) -> int:
  """Entry point; returns the exit code."""
  failed = []
  code = entry.run(lambda: failed.append(main(argv)))
  return code or int(bool(failed and failed[0]))


if __name__ == '__main__':
  sys.exit(run())
