"""Print a table of returns of scripted drivers in the offline world.

Example:

  python -m scripts.carla_policies --episodes 20
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np

from agents.run import entry
from planet.envs.carla import env as env_lib
from planet.envs.carla.policies import (
  Policy,
  PurePursuit,
  play,
  straight_on,
  uniform,
)

# Functions from a seed to the driver of an episode.
DRIVERS: dict[str, Callable[[int], Policy]] = {
  'stand still': lambda seed: straight_on(0),
  'uniform random actions': uniform,
  'throttle 0.05, no steering': lambda seed: straight_on(0.05),
  'throttle 0.08, no steering': lambda seed: straight_on(0.08),
  'throttle 0.5, no steering': lambda seed: straight_on(0.5),
  'throttle 0.5, steer uniform +-0.3': lambda x: uniform(x, (0.5, 0.5), 0.3),
  'full throttle, no steering': lambda seed: straight_on(1),
  'pure pursuit, 7 m/s': lambda seed: PurePursuit(7.0),
  'pure pursuit, 8 m/s': lambda seed: PurePursuit(8.0),
}


def main(argv: Sequence[str] | None = None) -> None:
  """Play the episodes and print the table."""
  parser = entry.Parser(
    prog='python -m scripts.carla_policies', description=__doc__
  )
  add = parser.add_argument
  add('--episodes', type='positive', default=20, help='episodes per driver')
  add('--map', default='loop', help='loop, grid or a .xodr file')
  add('--vehicles', type='count', nargs='+', default=[0, 10], help='per column')
  args = parser.parse_args(argv)
  titles = [f'{x} vehicles' for x in args.vehicles]
  print(f'| policy | {" | ".join(titles)} |\n|---{"|---" * len(titles)}|')
  for name, make in DRIVERS.items():
    cells = [_play(make, count, args) for count in args.vehicles]
    print(f'| {name} | {" | ".join(cells)} |', flush=True)


def _play(make, vehicles, args):
  sizes = {'map': args.map, 'x_res': 32, 'y_res': 32, 'seed': 0}
  env = env_lib.CarlaEnv({**sizes, 'vehicles': vehicles, 'pedestrians': 0})
  results = [play(env, make(seed)) for seed in range(args.episodes)]
  returns = [x['return'] for x in results]
  collided = sum(x['collisions'] > 0 for x in results)
  distance = np.mean([x['distance'] for x in results])
  return (
    f'{np.mean(returns):.0f} +- {np.std(returns):.0f}, {distance:.0f} m, '
    f'{collided}/{args.episodes} collided'
  )


if __name__ == '__main__':
  sys.exit(entry.run(main))
