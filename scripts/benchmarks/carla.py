"""Steps of the driving environment without a server."""

from typing import Any

from scripts.benchmarks import common

_STEPS = 100


def run_step(variant: str, args: Any) -> dict[str, Any]:
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

  def play():
    env.reset()
    for _ in range(_STEPS):
      env.step(action)

  return common.measure(play, max(1, args.units // _STEPS), _STEPS)


ALL = [
  common.Benchmark(
    'carla-step',
    'offline steps of the carla task; baseline: 400 x 175 pixels, resized',
    'steps',
    run_step,
    [
      ('size', 64, 'image size in pixels'),
      ('vehicles', 10, 'number of other vehicles'),
      ('pedestrians', 0, 'number of pedestrians'),
      ('map', 'loop', 'loop, grid or a .xodr file'),
      ('units', 1000, 'number of steps'),
    ],
  )
]
