"""Reproduce a result of this project or check its shipped agent.

Examples:

  python -m scripts.reproduce --list
  python -m scripts.reproduce her_reach --seed 0
  python -m scripts.reproduce her_reach --check

From another folder than the root of the checkout, start the file itself:

  python CHECKOUT/scripts/reproduce.py her_reach --check

Trains, evaluates, and writes learning curve, figure and summary to --out.
Repeat the command to resume an interrupted run. --collect copies the results to
results/ and updates its tables and figures. --original PATH trains the original
with the same settings instead.
"""

import argparse
import sys
from collections.abc import Sequence

from agents.run import entry as entry_lib
from agents.run import errors
from scripts.reproductions.entry import RESULTS, find


def main(argv: Sequence[str] | None = None) -> int:
  """Run the selected action; return the exit code."""
  args = parse_args(argv)
  # List without importing TensorFlow.
  if args.list:
    from scripts.reproductions import tables

    print(tables.make_list())
    return 0
  from scripts.reproductions import collecting, figures, shipping

  if args.check:
    good = shipping.check(find(args.name), args.results, args.episodes)
    return 0 if good else 1
  if args.original:
    from scripts.reproductions import originals

    entry = find(args.name)
    originals.train(entry, args.original, args.seed, args.out, args.results)
    return 0
  if args.name:
    collecting.reproduce(find(args.name), args.seed, args.out, args.results)
    return 0
  if args.collect:
    collecting.collect(args.out, args.results)
  for path in figures.draw(args.results):
    print(f'Wrote {path}.')
  return 0


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry_lib.Parser(
    prog='python -m scripts.reproduce', description=__doc__
  )
  add = parser.add_argument
  add('name', nargs='?', help='name of the result, see --list')
  add('--seed', type='seed', help='seed; default: the first of the result')
  text = (
    'train the original in this clone or folder with pybullet_envs instead, '
    'always from the start, and add its curve to results/reference'
  )
  add('--original', metavar='PATH', help=text)
  add('--out', default='logs/reproduce', help='folder for runs')
  add('--list', action='store_true', help='list all results')
  text = 'evaluate the shipped agent; exit with code 1 if it got worse'
  add('--check', action='store_true', help=text)
  add('--episodes', type='positive', help='number of episodes for --check')
  text = 'update results/ from the runs in --out'
  add('--collect', action='store_true', help=text)
  add('--figure', action='store_true', help='redraw the figures of results/')
  add('--results', default=RESULTS, help='folder of results')
  args = parser.parse_args(argv)
  if args.list + args.figure + args.collect + bool(args.name) != 1:
    raise errors.UsageError(
      'Give either the name of a result or one of --list, --collect and '
      '--figure.'
    )
  if (args.check or args.original) and not args.name:
    raise errors.UsageError(
      'Flags --check and --original need the name of a result; see --list.'
    )
  if args.seed is not None and (args.check or not args.name):
    raise errors.UsageError(
      f'Flag --seed is {args.seed}, but only trainings have one; omit it.'
    )
  if args.check and args.original or args.episodes and not args.check:
    raise errors.UsageError(
      'Give either --check, with --episodes if needed, or --original.'
    )
  return args


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry_lib.run(lambda: main(argv))


if __name__ == '__main__':
  sys.exit(run())
