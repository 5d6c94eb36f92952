"""Make a result of this project again, or play the agent that it ships.

Examples:

  python -m scripts.reproduce --list
  python -m scripts.reproduce her_reach --seed 0
  python -m scripts.reproduce her_reach --check

Trains, evaluates, and writes curve, figure and a line of the table below the
folder of --out. The same command continues what was stopped. --collect takes
over what lies there into results/, table and figures included.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from agents.run import entry as entry_lib
from agents.run import errors
from scripts.reproductions import entries
from scripts.reproductions.entry import RESULTS


def main(argv: Sequence[str] | None = None) -> None:
  """Do what the command line says."""
  args = parse_args(argv)
  if args.list:
    from scripts.reproductions import tables

    print(tables.make_list())
    return
  if args.figure or args.collect:
    from scripts.reproductions import collecting

    if args.collect:
      collecting.collect(args.out, args.results)
    for path in collecting.draw(args.results):
      print(f'Wrote {path}.')
    return
  entry = entries.find(args.name)
  if args.picture:
    from scripts.reproductions import pictures

    top = os.path.dirname(os.path.abspath(args.results))
    folder = os.path.join(top, 'docs', 'pictures')
    print(f'Wrote {pictures.draw(entry, args.results, folder)}.')
    return
  if args.check:
    from scripts.reproductions import shipping

    shipping.check(entry, args.results, args.episodes)
    return
  _reproduce(entry, args.seed, args.out, args.results)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m scripts.reproduce',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('name', nargs='?', help='result, see --list')
  add('--seed', type=int, help='seed; the first of the result by default')
  add('--out', default='logs/reproduce', help='folder of all runs')
  add('--list', action='store_true', help='show all results')
  text = 'play the shipped agent; exit code 1 if it is not as good as shipped'
  add('--check', action='store_true', help=text)
  add('--episodes', type=int, help='of --check, if not the usual number')
  text = 'draw the shipped agent into docs/pictures'
  add('--picture', action='store_true', help=text)
  add('--collect', action='store_true', help='update results/ from --out')
  add('--figure', action='store_true', help='draw the figures of results/')
  add('--results', default=RESULTS, help='folder of all results')
  args = parser.parse_args(argv)
  if args.list + args.figure + args.collect + bool(args.name) != 1:
    raise errors.UsageError(
      'Give either the name of a result, or one of --list, --collect and '
      '--figure.'
    )
  return args


def _reproduce(entry, seed, out, results):
  """Train, evaluate, and write what is known so far."""
  from scripts.reproductions import collecting, shipping, tables, training

  seed = entry.seeds[0] if seed is None else seed
  try:
    training.train(entry, seed, out)
    shipping.evaluate(entry, seed, out)
  finally:
    folder = os.path.dirname(training.make_folder(entry, seed, out))
    if collecting.summarize(entry, out, folder, results):
      line = tables.describe(entry, tables.read_runs(folder))
      print(f'{entry.name}: {line}')


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry_lib.run(lambda: main(argv))


if __name__ == '__main__':
  sys.exit(run())
