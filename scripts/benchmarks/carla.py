"""Benchmark of the driving environment without a server."""

from scripts.benchmarks import common

_STEPS = 100


@common.benchmark('steps')
def carla_step(
  variant: str,
  size: int = 64,
  vehicles: int = 10,
  pedestrians: int = 0,
  map: str = 'loop',
  units: int = 1000,
) -> common.Result:
  """Offline steps of the carla task; baseline: 400 x 175 pixels, resized.

  Includes rendering and a reset after 100 steps.

  Flags:
    size: Image size in pixels.
    vehicles, pedestrians: Number of other vehicles and pedestrians.
    map: loop, grid or a .xodr file.
    units: Number of steps.
  """
  import numpy as np

  from planet.envs.carla import env as env_lib

  env = env_lib.CarlaEnv(
    {
      'x_res': size,
      'y_res': size,
      'vehicles': vehicles,
      'pedestrians': pedestrians,
      'map': map,
      'offline_direct_render': variant == 'ours',
      'seed': 0,
    }
  )
  action = np.array([0.4, 0.0], np.float32)

  def play():
    env.reset()
    for _ in range(_STEPS):
      env.step(action)

  return common.measure(play, max(1, units // _STEPS), _STEPS)
