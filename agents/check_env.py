"""Check whether an environment works with PlaNet, PPO, HER and DDPG.

Example:

  agents-check-env Pendulum-v1
  agents-check-env my_module:MyReach-v0 --for her

Plays one episode with random actions and prints what it finds. Exits with 1 if
the environment fails for a system given by --for; without --for, if it fails
for all of them. DDPG is that of the pipeline, in which PPO and HER need the
same as by themselves.
"""

import argparse
import sys

from agents.envs import check, contract
from agents.run import entry, schema


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='agents-check-env', description=__doc__)
  add = parser.add_argument
  add('env', help='environment id, such as my_module:MyEnv-v0')
  add(
    '--for',
    dest='systems',
    action='append',
    choices=list(contract.SYSTEMS),
    help='system to check for; may be repeated (default all)',
  )
  text = 'arguments of the environment as a YAML mapping'
  add('--settings', default='{}', help=text)
  add('--seed', type='seed', default=0, help='random seed')
  args = parser.parse_args(argv)
  args.settings = schema.parse_mapping(args.settings, 'settings', '{map: loop}')
  return args


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: _main(argv))


def _main(argv):
  args = parse_args(argv)
  systems = args.systems or list(contract.SYSTEMS)
  report = check.check(args.env, systems, args.seed, args.settings)
  print(*report.lines(), sep='\n')
  works = [not found for found in report.problems.values()]
  return int(not (all(works) if args.systems else any(works)))


if __name__ == '__main__':
  sys.exit(run())
