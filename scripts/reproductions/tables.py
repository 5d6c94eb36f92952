"""The table of all results, generated from what stands beside each of them."""

import json
import math
import os
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import plot
from scripts.reproductions import bars, curves, entries
from scripts.reproductions.entry import Entry

RUNS = 'runs.json'
FIGURE = 'curve.png'
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


def read_runs(folder: str) -> dict[int, dict[str, Any]]:
  """Return what is known of each seed; nothing if there are no runs."""
  path = os.path.join(folder, RUNS)
  if not os.path.exists(path):
    return {}
  with open(path) as file_:
    return {int(k): v for k, v in json.load(file_).items()}


def make_list() -> str:
  """Return lines about all entries: what they need, and what is published."""
  lines = [
    f'{"name":24} {"seeds":>5} {"cores":>5} {"hours":>6} {"GPU":>4}  what'
  ]
  for entry in entries.ENTRIES.values():
    lines.append(
      f'{entry.name:24} {len(entry.seeds):5} {entry.cores:5} '
      f'{entry.hours:6g} {"yes" if entry.gpu else "no":>4}  {entry.meaning}'
    )
    if entry.published:
      lines.append(f'{"":24} published: {entry.published}')
  return '\n'.join([*lines, '', 'Hours are those of one seed.'])


def make_readme(results: str) -> str:
  """Return the text of `results/README.md`.

  Args:
    results: Folder of all results.
  """
  rows: list[Sequence[str]] = [_TITLES, ['---'] * len(_TITLES)]
  rows += [make_row(x, results) for x in entries.ENTRIES.values()]
  table = ''.join(f'| {" | ".join(row)} |\n' for row in rows)
  return f'{_HEAD}{table}{_TAIL}'


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
  if isinstance(entry.bar, bars.Played):
    values = [] if played is None else [played]
    judged = points[0][-1:], np.array(values)
  measured = entry.bar.measure(judged)
  return {
    'steps': int(points[0][-1]),
    # JSON knows no infinity.
    'measured': measured if math.isfinite(measured) else None,
    'reached': entry.bar.judge(judged, reference),
  }


def make_row(entry: Entry, results: str) -> list[str]:
  """Return the cells of an entry."""
  references = curves.read_reference(entry, results)
  compared = [entry.bar.measure(x) for x in references.values()]
  runs = read_runs(os.path.join(results, entry.name))
  name = f'[{entry.name}]({entry.name}/{FIGURE})' if runs else entry.name
  measured, original = f'{entry.measure}: {entry.bar.words}', '-'
  if compared and entry.reference.endswith('.csv'):
    original = show(entry, compared)
  elif compared:
    measured += f' ({entry.reference}: {show(entry, compared)})'
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


def describe(entry: Entry, runs: dict[int, dict[str, Any]]) -> str:
  """Return measured numbers, seeds and steps."""
  if not runs:
    return '-'
  missing = math.inf if entry.bar.in_steps else math.nan
  numbers = [
    missing if x['measured'] is None else x['measured'] for x in runs.values()
  ]
  steps = sorted({x['steps'] for x in runs.values()})
  most = f'{steps[0]:,}'
  if len(steps) > 1:
    most += f' to {steps[-1]:,}'
  seeds = ', '.join(str(x) for x in runs)
  word = 'seed' if len(runs) == 1 else 'seeds'
  text = f'{show(entry, numbers)} ({word} {seeds}; {most} steps)'
  played = [x['evaluation'] for x in runs.values() if x.get('evaluation')]
  if played:
    mean = statistics.mean(x['mean'] for x in played)
    # A bar for the trained agent is measured by just these episodes.
    is_told = isinstance(entry.bar, bars.Played)
    value = '' if is_told else f' {mean:.4g}'
    text += f'; trained agent{value} in {played[0]["episodes"]} episodes'
    text += ' per seed' if len(played) > 1 else ''
  return text


def judge(entry: Entry, runs: dict[int, dict[str, Any]]) -> str:
  """Return a word about the state: reproduced, reduced, missed, not run."""
  if not runs:
    seeds = len(entry.seeds)
    return f'not run: {_estimate(entry)}' + (' per seed' if seeds > 1 else '')
  words = []
  verdicts = [x['reached'] for x in runs.values() if x['reached'] is not None]
  complete = [x for x in runs.values() if x['complete']]
  numbers = [x['measured'] for x in runs.values()]
  if not entry.bar.in_steps and numbers.count(None) == len(numbers):
    words.append('bar not measured')
  elif not verdicts:
    words.append('no bar')
  elif all(verdicts):
    words.append('bar reached' if entry.reduced else 'reproduced')
  else:
    words.append(f'bar reached by {sum(verdicts)} of {len(verdicts)}')
  if len(complete) < len(entry.seeds):
    words.append(f'{len(complete)} of {len(entry.seeds)} seeds complete')
  return '; '.join([*words, *filter(None, [entry.reduced])])


def show_cost(entry: Entry, runs: dict[int, dict[str, Any]]) -> str:
  """Return the CPU hours of a seed, or wall hours where they are unknown."""
  cpu = [x['cpu_hours'] for x in runs.values() if x.get('cpu_hours')]
  if cpu:
    text = f'{statistics.mean(cpu):.2g} CPU h'
    if not all(x['complete'] for x in runs.values()):
      text += f' so far, {_estimate(entry)} in all'
    return text
  wall = [x['wall_hours'] for x in runs.values() if x.get('wall_hours')]
  return f'{statistics.mean(wall):.2g} h' if wall else _estimate(entry)


def show(entry: Entry, numbers: list[float]) -> str:
  """Return numbers of several seeds as one: middle and spread.

  Args:
    entry: What was measured.
    numbers: One per seed; infinite for steps that were not reached, NaN for
      what has not been measured.
  """
  if entry.bar.in_steps:
    known = sorted(x for x in numbers if math.isfinite(x))
    never = len(numbers) - len(known)
    text = f'never for {never} of {len(numbers)}' if never else ''
    if not known:
      return text
    middle = f'{statistics.median_high(known):,.0f}'
    if len(known) > 1:
      middle += f' [{known[0]:,.0f}, {known[-1]:,.0f}]'
    return '; '.join(filter(None, [middle, text]))
  known = [x for x in numbers if math.isfinite(x)]
  mean = f'{statistics.mean(known):.4g}' if known else 'not measured'
  if len(known) > 1:
    mean += f' ± {statistics.stdev(known):.2g}'
  return mean


def _estimate(entry):
  where = 'a GPU' if entry.gpu else f'{entry.cores} core(s)'
  return f'about {entry.hours:g} h on {where}'
