"""Benchmark this code against a baseline.

Example:

  python -m scripts.benchmark ppo --repeats 3 --json

Runs this code and the baseline in turn, each in its own process, so changes in
machine speed affect both. Quote the ratios, not the seconds.
"""

import argparse
import inspect
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from agents.run import entry, errors
from scripts import machine
from scripts.benchmarks import carla, common, her, planet, ppo

_MODULES = carla, her, planet, ppo
_RESULT = 'RESULT '


def main(argv: Sequence[str] | None = None) -> None:
  """Run one benchmark and print a table, and with `--json` an object."""
  argv = list(sys.argv[1:] if argv is None else argv)
  args = parse_args(argv)
  benchmark = common.BENCHMARKS[args.name]
  if args.child:
    flags = {name: getattr(args, name) for name in benchmark.flags}
    print(f'{_RESULT}{json.dumps(benchmark.run(args.child, **flags))}')
    return
  versions = machine.describe()
  described = f'{versions["processor"]}, {versions["versions"]}'
  print(f'{args.name}: {benchmark.meaning}\n{described}')
  variants = {'ours': (benchmark.ours, machine.ROOT)}
  if args.against:
    variants['baseline'] = (benchmark.ours, os.path.abspath(args.against))
  elif benchmark.baseline:
    variants['baseline'] = (benchmark.baseline, machine.ROOT)
  found: dict[str, list[dict[str, Any]]] = {x: [] for x in variants}
  for repeat in range(args.repeats):
    for name, (variant, folder) in variants.items():
      result = _measure(benchmark, argv, variant, folder, args.ranks)
      found[name].append(result)
      print(_describe(f'{name} {repeat + 1}', benchmark, result), flush=True)
  summary = _summarize(found)
  if 'ratio' in summary:
    print(
      f'Speed-up over the baseline: {summary["ratio"]:.2f} in CPU time (pairs '
      f'{", ".join(f"{x:.2f}" for x in summary["ratios"])}), '
      f'{summary["wall_ratio"]:.2f} in wall time.'
    )
  if args.json:
    summary = {'name': args.name, 'unit': benchmark.unit, **summary}
    print(json.dumps({**summary, 'machine': described}))


def parse_args(argv: Sequence[str]) -> argparse.Namespace:
  """Parse the command line, including the flags of the benchmark."""
  shared = entry.Parser(add_help=False)
  add = shared.add_argument
  add('--repeats', type='positive', default=3, help='number of paired runs')
  add('--against', help='folder of another checkout, used as the baseline')
  add('--ranks', type='positive', default=2, help='number of MPI processes')
  add('--json', action='store_true', help='print JSON in the last line')
  add('--child', help=argparse.SUPPRESS)
  parser = entry.Parser(prog='python -m scripts.benchmark', description=__doc__)
  names = parser.add_subparsers(dest='name', metavar='NAME', required=True)
  for name, benchmark in common.BENCHMARKS.items():
    own = names.add_parser(
      name,
      help=benchmark.meaning,
      description=inspect.getdoc(benchmark.run),
      parents=[shared],
    )
    for flag, default in benchmark.flags.items():
      own.add_argument(f'--{flag}', type=type(default), default=default)
  args = parser.parse_args(argv)
  # Processes of the baseline run in its folder.
  if args.against and not args.child and not os.path.isdir(args.against):
    raise errors.UsageError(
      f'Flag --against is {args.against}; give the folder of a checkout.'
    )
  return args


def _measure(benchmark, argv, variant, folder, ranks):
  """Run a variant with the code in a folder; sum the CPU time of its ranks."""
  command = ['python', '-m', 'scripts.benchmark', *argv, '--child', variant]
  if variant == 'rank':
    mpirun = ['mpirun', '--oversubscribe', '--bind-to', 'none', '-n']
    command = [*mpirun, str(ranks), *command]
  done = subprocess.run(
    machine.resolve(command),
    env=machine.environ(**benchmark.environ),
    cwd=folder,
    stdout=subprocess.PIPE,
    text=True,
    preexec_fn=machine.end_with_parent,
  )
  if done.returncode:
    raise errors.Failure(
      f'The benchmark failed in {folder}; see its output above.'
    )
  lines = [x for x in done.stdout.splitlines() if x.startswith(_RESULT)]
  found = [json.loads(x.removeprefix(_RESULT)) for x in lines]
  slowest = max(found, key=lambda x: x['wall_s'])
  return {**slowest, 'cpu_s': sum(x['cpu_s'] for x in found)}


def _describe(title, benchmark, result):
  units, cpu = result['units'], result['cpu_s']
  return (
    f'  {title:12} {units / cpu:10.4g} {benchmark.unit} per CPU second, '
    f'{cpu / units:.4g} CPU s and {result["wall_s"] / units:.4g} s each, '
    f'peak {result["peak_bytes"] / 2**30:.2f} GiB'
  )


def _summarize(found):
  """Return medians and the ratios of paired runs."""
  summary: dict[str, Any] = {}
  for key, prefix in (('cpu_s', ''), ('wall_s', 'wall_')):
    costs = {k: [x[key] / x['units'] for x in v] for k, v in found.items()}
    summary[key] = statistics.median(costs['ours'])
    if 'baseline' in costs:
      ratios = [y / x for x, y in zip(costs['ours'], costs['baseline'])]
      summary[f'baseline_{key}'] = statistics.median(costs['baseline'])
      summary[f'{prefix}ratio'] = statistics.median(ratios)
      summary[f'{prefix}ratios'] = ratios
  return summary


if __name__ == '__main__':
  sys.exit(entry.run(main))
