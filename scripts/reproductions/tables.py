"""Runs as JSON, and the tables that show them."""

import json
import math
import os
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import plot
from scripts.reproductions import curves
from scripts.reproductions.entry import Entry, find, load

RUNS = 'runs.json'
FIGURE = 'curve.png'
# What lies between these in README.md is generated.
MARKERS = '<!-- results -->', '<!-- /results -->'
HIGHLIGHTS = (
  'her_reach',
  'her_push',
  'her_pick',
  'ppo_pendulum',
  'ppo_swingup',
  'planet_cartpole_balance',
  'planet_cartpole_swingup',
  'carla_loop',
)
_README = (
  'result',
  'what',
  'published, or original code today',
  'ours',
  'cost on one core',
)
_TAIL = """
## Trained agents

`agents/<name>` holds weights and settings, without optimisers and pickles.

    python -m scripts.reproduce her_reach --check

plays one in fresh episodes, compares their mean with the interval of
`shipped.json` (three standard errors of the difference, or a tolerance where
that is more), and ends with 1 if it lies outside.

    from baselines_her import load
    agent = load('results/agents/her_reach')

## Recorded earlier, without this program

[her](her), [ppo](ppo), [planet](planet) (with speeds) and [carla](carla) hold
older recordings with their commands. No row above uses one.
"""
_TITLES = (
  'result',
  'what',
  'published',
  'measured',
  'original code, today',
  'ours',
  'state',
  'cost per seed',
)
_HEAD = """# Results

Each row is made by `python -m scripts.reproduce NAME`, and this page by
`python -m scripts.reproduce --collect`. Curve (`curve.csv`, `curve.png`) and
`runs.json`, with the exact command, versions, processor and time of each seed,
lie in the folder of the row. `global_step` counts environment steps, action
repeat included; those of PPO count evaluation, too, as in the original. Curves
of the original code on today's machine are in [reference](reference);
horizontal lines are published values, at the step that their label tells. At
full size, PlaNet has one test per ten episodes, so the episodes that it
collects, with the noise that explores, are a curve beside it (phase `train`).

Numbers of several seeds are mean and standard deviation; of steps, median and
range. "Never" is a seed that has not reached the value. CPU hours are what
counts, as the machine was shared.

"""


Runs = dict[int, dict[str, Any]]


def read_runs(folder: str) -> Runs:
  """Return what is known of each seed; nothing if there are no runs."""
  path = os.path.join(folder, RUNS)
  if not os.path.exists(path):
    return {}
  with open(path) as file_:
    return {int(k): v for k, v in json.load(file_).items()}


def make_list() -> str:
  """Return lines about all entries: what they need, and what is published."""
  row = '{:24} {:>5} {:>5} {:>6} {:>4}  {}'.format
  lines = [row('name', 'seeds', 'cores', 'hours', 'GPU', 'what')]
  for x in load().values():
    gpu, hours = 'yes' if x.gpu else 'no', f'{x.hours:g}'
    lines.append(row(x.name, len(x.seeds), x.cores, hours, gpu, x.meaning))
    if x.published:
      lines.append(f'{"":24} published: {x.published}')
  return '\n'.join([*lines, '', 'Hours are those of one seed.'])


def make_page(results: str) -> str:
  """Return the text of `results/README.md`."""
  rows = [make_row(x, results) for x in load().values()]
  return f'{_HEAD}{_make_table(_TITLES, rows)}{_TAIL}'


def make_highlights(results: str) -> str:
  """Return the table of README.md: some results, in few words."""
  rows = [_make_short_row(find(x), results) for x in HIGHLIGHTS]
  return _make_table(_README, rows)


def insert_highlights(readme: str, results: str) -> str:
  """Return the text of README.md with the table between its markers."""
  first, last = MARKERS
  if first not in readme:
    return readme
  before, _, rest = readme.partition(first)
  after = rest.partition(last)[2]
  return f'{before}{first}\n\n{make_highlights(results)}\n{last}{after}'


def make_line(
  entry: Entry,
  points: plot.Points,
  reference: plot.Points | None,
  played: float | None = None,
) -> dict[str, Any]:
  """Return what a curve says about a seed.

  Args:
    entry: What was trained.
    points: Curve of the seed.
    reference: Curve to compare with, or None.
    played: Mean of the episodes of the trained agent, None if there are none.
  """
  judged = points
  if entry.bar.kind == 'played':
    values = [] if played is None else [played]
    judged = points[0][-1:], np.array(values)
  measured = entry.bar.measure(judged)
  return {
    'steps': int(points[0][-1]),
    # JSON has no infinity.
    'measured': measured if math.isfinite(measured) else None,
    'reached': entry.bar.judge(judged, reference),
  }


def make_row(entry: Entry, results: str) -> list[str]:
  """Return the cells of an entry."""
  runs = read_runs(os.path.join(results, entry.name))
  name = f'[{entry.name}]({entry.name}/{FIGURE})' if runs else entry.name
  measured = f'{entry.measure}: {entry.bar.words}'
  compared, original = _compare(entry, results), '-'
  if compared and entry.reference.endswith('.csv'):
    original = compared
  elif compared:
    measured += f' ({entry.reference}: {compared})'
  return [
    name,
    entry.meaning,
    entry.published or '-',
    measured,
    original,
    describe(entry, runs),
    judge(entry, runs),
    show_cost(entry, runs),
  ]


def describe(entry: Entry, runs: Runs) -> str:
  """Return measured numbers, seeds and steps."""
  if not runs:
    return '-'
  steps = sorted({x['steps'] for x in runs.values()})
  most = ' to '.join(f'{x:,}' for x in dict.fromkeys([steps[0], steps[-1]]))
  seeds = ', '.join(str(x) for x in runs)
  word = 'seed' if len(runs) == 1 else 'seeds'
  text = f'{_show_ours(entry, runs)} ({word} {seeds}; {most} steps)'
  played = [x['evaluation'] for x in runs.values() if x.get('evaluation')]
  if played:
    mean = statistics.mean(x['mean'] for x in played)
    # A bar for the trained agent is measured by just these episodes.
    value = '' if entry.bar.kind == 'played' else f' {mean:.4g}'
    text += f'; trained agent{value} in {played[0]["episodes"]} episodes'
    text += ' per seed' if len(played) > 1 else ''
  return text


def judge(entry: Entry, runs: Runs) -> str:
  """Return words about the state of a result."""
  if not runs:
    more = ' per seed' if len(entry.seeds) > 1 else ''
    return f'not run: {_estimate(entry)}{more}'
  complete = [x for x in runs.values() if x['complete']]
  words = [_find_verdict(entry, runs)]
  if len(complete) < len(entry.seeds):
    words.append(f'{len(complete)} of {len(entry.seeds)} seeds complete')
  return '; '.join([*words, *filter(None, [entry.reduced])])


def show_cost(entry: Entry, runs: Runs) -> str:
  """Return the CPU hours of a seed, estimated for what is not complete."""
  cpu = [x['cpu_hours'] for x in runs.values()]
  if not cpu:
    return _estimate(entry)
  text = f'{statistics.mean(cpu):.2g} CPU h'
  if not all(x['complete'] for x in runs.values()):
    text += f' so far, {_estimate(entry)} in all'
  return text


def show(entry: Entry, numbers: list[float]) -> str:
  """Return numbers of several seeds as one: middle and spread.

  Args:
    entry: What was measured.
    numbers: One per seed; infinite for steps that were not reached, NaN for
      what has not been measured.
  """
  known = sorted(x for x in numbers if math.isfinite(x))
  if not entry.bar.in_steps:
    mean = f'{statistics.mean(known):.4g}' if known else 'not measured'
    return mean + (f' ± {statistics.stdev(known):.2g}' if known[1:] else '')
  parts = []
  if known:
    parts.append(f'{statistics.median_high(known):,.0f}')
    if known[1:]:
      parts[0] += f' [{known[0]:,.0f}, {known[-1]:,.0f}]'
  if len(known) < len(numbers):
    parts.append(f'never for {len(numbers) - len(known)} of {len(numbers)}')
  return '; '.join(parts)


def _make_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  lines = [titles, ['---'] * len(titles), *rows]
  return ''.join(f'| {" | ".join(x)} |\n' for x in lines)


def _make_short_row(entry, results):
  runs = read_runs(os.path.join(results, entry.name))
  published = [
    f'{v:g} {k.removeprefix("published ")}' for k, v in entry.levels.items()
  ]
  if entry.reference.endswith('.csv'):
    published.append(f'{_compare(entry, results)} (original code)')
  what = {
    'reach': f'steps to {entry.measure} {entry.bar.level}',
    'stay': f'steps until {entry.measure} stays {entry.bar.level}',
  }.get(entry.bar.kind, entry.measure)
  ours = '-'
  if runs:
    seeds = f'{len(runs)} seed' + 's' * (len(runs) > 1)
    ours = f'{_show_ours(entry, runs)} ({seeds}): {_find_verdict(entry, runs)}'
  hours = statistics.mean(
    [x['cpu_hours'] for x in runs.values()] or [entry.hours]
  )
  return [
    f'[{entry.name}](results/{entry.name}/{FIGURE})',
    f'{entry.meaning}; {what}',
    '; '.join(published) or '-',
    ours,
    f'{hours:.1f} h' if hours >= 1 else f'{60 * hours:.0f} min',
  ]


def _find_verdict(entry, runs):
  """Return whether the bar is met; only some bars are those of the original."""
  verdicts = [x['reached'] for x in runs.values() if x['reached'] is not None]
  if not entry.bar.in_steps and all(
    x['measured'] is None for x in runs.values()
  ):
    return 'not measured'
  if not verdicts:
    return 'no threshold'
  word = 'reproduced' if entry.reproduces else 'own threshold met'
  if all(verdicts):
    return word
  if any(verdicts):
    return f'{word} by {sum(verdicts)} of {len(verdicts)} seeds'
  return 'not reproduced' if entry.reproduces else 'own threshold missed'


def _show_ours(entry, runs):
  missing = math.inf if entry.bar.in_steps else math.nan
  numbers = [x['measured'] for x in runs.values()]
  return show(entry, [missing if x is None else x for x in numbers])


def _compare(entry, results):
  """Return the numbers of the curves to compare with; empty without any."""
  found = curves.read_reference(entry, results).values()
  return found and show(entry, [entry.bar.measure(x) for x in found])


def _estimate(entry):
  where = 'a GPU' if entry.gpu else f'{entry.cores} core(s)'
  return f'about {entry.hours:g} h on {where}'
