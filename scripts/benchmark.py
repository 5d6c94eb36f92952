"""Benchmark this code against a baseline.

Example:

  python -m scripts.benchmark ppo --repeats 3 --json

Runs ours and the baseline in turn, each in its own process, so that changes of
machine speed affect both. Quote the ratios, not the seconds.
"""

import argparse
import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from agents.run import entry, errors
from scripts import machine
from scripts.benchmarks import common

MODULES = ('carla', 'her', 'planet', 'planet_ranks', 'ppo')


def find_subjects() -> dict[str, common.Subject]:
  """Dict from name to `Subject`, from all modules that exist."""
  subjects = {}
  for name in MODULES:
    place = f'scripts.benchmarks.{name}'
    if importlib.util.find_spec(place):
      for subject in importlib.import_module(place).SUBJECTS:
        subjects[subject.name] = subject
  return subjects


def main(argv: Sequence[str] | None = None) -> None:
  """Measure one subject and print a table; with `--json` an object, too."""
  subject, args, rest = parse_args(argv)
  if args.child:
    result = subject.run(args.child, args)
    print('RESULT ' + json.dumps(result.as_dict()), flush=True)
    return
  print(f'{subject.name}: {subject.meaning}')
  described = describe_machine()
  print(described)
  results: dict[str, list[dict[str, Any]]] = {'ours': [], 'baseline': []}
  for repeat in range(args.repeats):
    for variant, measured in results.items():
      measured.append(run_child(subject, variant, args, rest))
      print_row(f'{variant} {repeat + 1}', subject, measured[-1])
  summary = summarize(subject, args, results, described)
  print(
    f'CPU seconds per unit: ours {summary["cpu_s"]:.4g}, baseline '
    f'{summary["baseline_cpu_s"]:.4g}, ratio {summary["ratio"]:.2f} '
    f'(pairs {", ".join(f"{x:.2f}" for x in summary["ratios"])}).'
  )
  print(
    f'Wall seconds per unit: ours {summary["wall_s"]:.4g}, baseline '
    f'{summary["baseline_wall_s"]:.4g}, ratio {summary["wall_ratio"]:.2f}.'
  )
  if summary['bound_cpu_s']:
    print(
      f'Bound from matrix products at {summary["gflops"]:.0f} GFLOP per CPU '
      f'second: {summary["bound_cpu_s"]:.4g}, ours is '
      f'{summary["cpu_s"] / summary["bound_cpu_s"]:.2f} times that.'
    )
  if args.json:
    print(json.dumps(summary))


def run_child(
  subject: common.Subject,
  variant: str,
  args: argparse.Namespace,
  rest: list[str],
) -> dict[str, Any]:
  """Measure one variant in a process of its own; returns plain numbers."""
  command = [sys.executable, '-m', 'scripts.benchmark', subject.name]
  environ = {**os.environ, **subject.environ(variant, args)}
  result = subprocess.run(
    command + ['--child', variant, *rest],
    env=environ,
    capture_output=True,
    text=True,
  )
  lines = [x for x in result.stdout.splitlines() if x.startswith('RESULT ')]
  if result.returncode or not lines:
    raise RuntimeError(
      f'{variant} failed with exit code {result.returncode}:\n'
      + result.stderr[-4000:]
    )
  return json.loads(lines[-1][len('RESULT ') :])


def summarize(
  subject: common.Subject,
  args: argparse.Namespace,
  results: dict[str, list[dict[str, Any]]],
  described: str,
) -> dict[str, Any]:
  """Medians and ratios over the pairs of runs."""
  cost = {
    variant: [x['cpu_s'] / x['units'] for x in measured]
    for variant, measured in results.items()
  }
  ratios = [y / x for x, y in zip(cost['ours'], cost['baseline'])]
  rate = common.matrix_product_rate() if subject.bound else None
  wall = {
    variant: statistics.median(x['wall_s'] / x['units'] for x in measured)
    for variant, measured in results.items()
  }
  return {
    'name': subject.name,
    'unit': subject.unit,
    'ratio': statistics.median(ratios),
    'ratios': ratios,
    'cpu_s': statistics.median(cost['ours']),
    'baseline_cpu_s': statistics.median(cost['baseline']),
    'wall_s': wall['ours'],
    'baseline_wall_s': wall['baseline'],
    'wall_ratio': statistics.median(
      y['wall_s'] / y['units'] / (x['wall_s'] / x['units'])
      for x, y in zip(results['ours'], results['baseline'])
    ),
    'peak_bytes': max(x['peak_bytes'] for x in results['ours']),
    'bound_cpu_s': subject.bound(args, rate) if subject.bound else None,
    'gflops': rate and rate / 1e9,
    'extra': {k: v[-1]['extra'] for k, v in results.items()},
    'machine': described,
  }


def print_row(
  title: str, subject: common.Subject, measured: dict[str, Any]
) -> None:
  units, cpu = measured['units'], measured['cpu_s']
  extra = ', '.join(f'{k} {v:.4g}' for k, v in measured['extra'].items())
  print(
    f'  {title:12} {units / cpu:10.4g} {subject.unit} per CPU second, '
    f'{cpu / units:.4g} CPU s and {measured["wall_s"] / units:.4g} s each, '
    f'peak {measured["peak_bytes"] / 2**30:.2f} GiB'
    + (f', {extra}' if extra else ''),
    flush=True,
  )


def describe_machine() -> str:
  """Return processor, cores and versions, in one line."""
  return (
    f'{machine.describe_processor()}, Python {platform.python_version()}, '
    f'TensorFlow {metadata.version("tensorflow")}'
  )


def parse_args(
  argv: Sequence[str] | None = None,
) -> tuple[common.Subject, argparse.Namespace, list[str]]:
  """Subject, parsed arguments, and the arguments for the children."""
  argv = list(sys.argv[1:] if argv is None else argv)
  subjects = find_subjects()
  parser = argparse.ArgumentParser(
    prog='python -m scripts.benchmark',
    description=__doc__,
    epilog='\n'.join(f'{k:14} {v.meaning}' for k, v in subjects.items()),
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('name', help='benchmark, see below')
  parser.add_argument(
    '--repeats', type=int, default=3, help='number of paired runs'
  )
  parser.add_argument(
    '--json',
    action='store_true',
    help='print the results as JSON in the last line',
  )
  parser.add_argument('--child', default=None, help=argparse.SUPPRESS)
  name = next((x for x in argv if not x.startswith('-')), None)
  if name in subjects:
    subjects[name].add_arguments(parser)
  args = parser.parse_args(argv)
  if args.name not in subjects:
    raise errors.UsageError(
      f'Subject {args.name!r} is unknown. {errors.suggest(args.name, subjects)}'
    )
  rest = [x for x in argv[1:] if x != '--json']
  return subjects[args.name], args, rest


if __name__ == '__main__':
  sys.exit(entry.run(main))
