"""Benchmark this code against a baseline.

Example:

  python -m scripts.benchmark ppo --repeats 3 --json

Runs ours and the baseline in turn, each in its own process, so that changes of
machine speed affect both. Quote the ratios, not the seconds.
"""

import argparse
import importlib
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

_MODULES = ('carla', 'her', 'planet', 'ppo')
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(argv: Sequence[str] | None = None) -> None:
  """Run one benchmark and print a table; with `--json` an object, too."""
  argv = list(sys.argv[1:] if argv is None else argv)
  benchmark, args = parse_args(argv)
  if args.child:
    print(f'RESULT {json.dumps(_run_child(benchmark, args, argv))}', flush=True)
    return
  described = (
    f'{machine.describe_processor()}, Python {platform.python_version()}, '
    f'TensorFlow {metadata.version("tensorflow")}'
  )
  print(f'{benchmark.name}: {benchmark.meaning}\n{described}')
  variants = {'ours': _ROOT}
  if args.against:
    variants['baseline'] = os.path.abspath(args.against)
  elif benchmark.baseline:
    variants['baseline'] = _ROOT
  found: dict[str, list[dict[str, Any]]] = {x: [] for x in variants}
  for repeat in range(args.repeats):
    for variant, folder in variants.items():
      child = 'ours' if args.against else variant
      result = _start(benchmark, child, folder, _remove_own(argv))
      found[variant].append(result)
      print(_describe(f'{variant} {repeat + 1}', benchmark, result), flush=True)
  summary = _summarize(found)
  if 'ratio' in summary:
    print(
      f'Ratio of CPU seconds {summary["ratio"]:.2f} (pairs '
      f'{", ".join(f"{x:.2f}" for x in summary["ratios"])}), of wall seconds '
      f'{summary["wall_ratio"]:.2f}; more than 1 is faster than the baseline.'
    )
  if args.json:
    summary = {'name': benchmark.name, 'unit': benchmark.unit, **summary}
    print(json.dumps({**summary, 'machine': described}))


def parse_args(
  argv: Sequence[str],
) -> tuple[common.Benchmark, argparse.Namespace]:
  """Return the benchmark and the parsed arguments."""
  known = {
    x.name: x
    for module in _MODULES
    for x in importlib.import_module(f'scripts.benchmarks.{module}').ALL
  }
  parser = argparse.ArgumentParser(
    prog='python -m scripts.benchmark',
    description=__doc__,
    epilog='\n'.join(f'{k:14} {v.meaning}' for k, v in known.items()),
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('name', help='benchmark, see below')
  add('--repeats', type=int, default=3, help='number of paired runs')
  add('--against', help='folder of another checkout, used as the baseline')
  add('--json', action='store_true', help='print JSON in the last line')
  add('--child', help=argparse.SUPPRESS)
  name = next((x for x in argv if x in known), '')
  for flag, default, meaning in known[name].flags if name else ():
    kind = str if default is None else type(default)
    add(f'--{flag}', type=kind, default=default, help=meaning)
  args = parser.parse_args(argv)
  if args.name not in known:
    raise errors.UsageError(
      f'Benchmark {args.name!r} is unknown. {errors.suggest(args.name, known)}'
    )
  return known[args.name], args


def _remove_own(argv):
  """Return the arguments without those that are not for children."""
  parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
  parser.add_argument('--json', action='store_true')
  for name in ('--repeats', '--against'):
    parser.add_argument(name)
  return parser.parse_known_args(argv)[1]


def _start(benchmark, variant, folder, argv):
  """Run a variant in a process of its own, with the code in a folder."""
  command = [sys.executable, '-m', 'scripts.benchmark', *argv]
  result = subprocess.run(
    [*command, '--child', variant],
    env={**os.environ, **benchmark.environ(variant)},
    cwd=folder,
    stdout=subprocess.PIPE,
    text=True,
    check=True,
  )
  return _find_results(result.stdout)[-1]


def _run_child(benchmark, args, argv):
  """Return the numbers of a variant; those of all ranks are combined."""
  if not (benchmark.ranks and args.child == 'ours'):
    return benchmark.run(args.child, args)
  mpirun = os.path.join(os.path.dirname(sys.executable), 'mpirun')
  command = [mpirun, '--oversubscribe', '--bind-to', 'none', '-n']
  command += [str(args.ranks), sys.executable, '-m', 'scripts.benchmark']
  # Open MPI refuses root, but containers often have no other user.
  root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
  result = subprocess.run(
    [*command, *argv, '--child', 'rank'],
    env={**os.environ, **root},
    stdout=subprocess.PIPE,
    text=True,
    check=True,
  )
  found = _find_results(result.stdout)
  slowest = max(found, key=lambda x: x['wall_s'])
  return {**slowest, 'cpu_s': sum(x['cpu_s'] for x in found)}


def _find_results(output):
  lines = [x for x in output.splitlines() if x.startswith('RESULT ')]
  return [json.loads(x.removeprefix('RESULT ')) for x in lines]


def _describe(title, benchmark, result):
  units, cpu = result['units'], result['cpu_s']
  return (
    f'  {title:12} {units / cpu:10.4g} {benchmark.unit} per CPU second, '
    f'{cpu / units:.4g} CPU s and {result["wall_s"] / units:.4g} s each, '
    f'peak {result["peak_bytes"] / 2**30:.2f} GiB'
  )


def _summarize(found):
  """Return medians, and ratios over the pairs of runs."""
  costs = {
    key: {k: [x[key] / x['units'] for x in v] for k, v in found.items()}
    for key in ('cpu_s', 'wall_s')
  }
  summary: dict[str, Any] = {}
  for key, cost in costs.items():
    summary[key] = statistics.median(cost['ours'])
    if 'baseline' in cost:
      ratios = [y / x for x, y in zip(cost['ours'], cost['baseline'])]
      prefix = key.removesuffix('s').replace('cpu_', '')
      summary[f'baseline_{key}'] = statistics.median(cost['baseline'])
      summary[f'{prefix}ratio'] = statistics.median(ratios)
      summary[f'{prefix}ratios'] = ratios
  return summary


if __name__ == '__main__':
  sys.exit(entry.run(main))
