"""Steps of the driving environment without a server.

The baseline is a driver of the world that renders at the size of the fork's
camera, 400 x 175, and shrinks every image by area, as it has to be done with
a server.
"""

import argparse

from scripts.benchmarks import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
  parser.add_argument('--size', type=int, default=64, help='of the images')
  parser.add_argument('--vehicles', type=int, default=10, help='others')
  parser.add_argument('--pedestrians', type=int, default=0, help='as well')
  parser.add_argument('--map', default='loop', help='loop, grid or a file')
  parser.add_argument('--units', type=int, default=1000, help='steps')


def run_step(variant: str, args: argparse.Namespace) -> common.Measurement:
  """Measure steps of episodes of 100, resets and rendering included."""
  import numpy as np

  from planet.envs.carla import env as env_lib

  env = env_lib.CarlaEnv(
    {
      'map': args.map,
      'x_res': args.size,
      'y_res': args.size,
      'vehicles': args.vehicles,
      'pedestrians': args.pedestrians,
      'offline_direct_render': variant == 'ours',
      'seed': 0,
    }
  )
  action = np.array([0.4, 0.0], np.float32)
  env.reset()
  env.step(action)
  with common.Measurement(args.units) as result:
    for step in range(args.units):
      if step % 100 == 0:
        env.reset()
      env.step(action)
  result.extra['camera us'] = 1e6 * _camera_seconds(env)
  return result


def _camera_seconds(env, count=200):
  """CPU seconds of one image, without anything else."""
  camera = common.Measurement(count)
  with camera:
    for _ in range(count):
      env.backend.render()
  return camera.cpu_s / count


SUBJECTS = [
  common.Subject(
    name='carla-step',
    meaning='environment steps of the carla task, offline',
    unit='steps',
    run=run_step,
    add_arguments=add_arguments,
  )
]
