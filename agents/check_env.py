"""Check whether an environment works with PlaNet, PPO and HER.

Example:

  python -m agents.check_env Pendulum-v1
  python -m agents.check_env my_module:MyReach-v0 --for her

Plays one episode with random actions and prints what it finds. Exits with 1 if
the environment fails for a system given by --for; without --for, if it fails
for all of them.
"""

import argparse
import sys

from agents.envs import check
from agents.run import entry

check_env = check.check


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m agents.check_env',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('env', help='environment id, such as my_module:MyEnv-v0')
  add(
    '--for',
    dest='systems',
    action='append',
    choices=list(check.SYSTEMS),
    help='system to check for; may be repeated (default: all)',
  )
  add('--seed', type=int, default=0, help='random seed (default: 0)')
  return parser.parse_args(argv)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  results: list[bool] = []

  def work() -> None:
    args = parse_args(argv)
    systems = args.systems or list(check.SYSTEMS)
    report = check.check(args.env, systems, args.seed)
    print(*report.lines(), sep='\n')
    suits = [not found for found in report.problems.values()]
    results.append(all(suits) if args.systems else any(suits))

  return entry.run(work) or int(not all(results))


if __name__ == '__main__':
  sys.exit(run())
