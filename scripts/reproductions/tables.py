"""Records of runs as JSON, and tables of results."""

import functools
import glob
import json
import math
import os
import re
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import files
from scripts.reproductions import bars, curves, figures, intervals
from scripts.reproductions.entry import Entry, find, load, shorten

RUNS = 'runs.json'
# The text between these in README.md and results/README.md is generated.
MARKERS = '<!-- results -->', '<!-- /results -->'
# Also generated: numbers in sentences, from a row or as the mean of the latest
# evaluations of its seeds at a step.
_NUMBER = re.compile(r'(<!-- (\w+)(?: at (\d+))? -->).*?(?=<!-- / -->)', re.S)
_LATEST = 3
_HIGHLIGHTS = (
  'her_reach her_push her_pick ppo_pendulum ppo_swingup '
  'planet_balance_hour planet_swingup_hour carla_loop'
)
_ROW = '{:24} {:>5} {:>5} {:>6} {:>4}  {}'

# Results of fewer seeds are listed one by one.
_FEW = 3

# Results of `collecting.make_line` by seed.
Runs = dict[int, dict[str, Any]]


def read_runs(folder: str) -> Runs:
  """Return the records of all seeds; empty if there are no runs."""
  path = os.path.join(folder, RUNS)
  if not os.path.exists(path):
    return {}
  with open(path) as file_:
    return {int(k): v for k, v in json.load(file_).items()}


def make_list() -> str:
  """Return a table of all entries, their requirements and published values."""
  lines = [_ROW.format('name', 'seeds', 'cores', 'hours', 'GPU', 'what')]
  for x in load().values():
    needs = len(x.seeds), x.cores, f'{x.hours:g}', 'yes' if x.gpu else 'no'
    lines.append(_ROW.format(x.name, *needs, x.meaning))
    if x.published:
      lines.append(f'{"":24} published: {x.published}')
  return '\n'.join([*lines, '', 'Hours are per seed.'])


def write(results: str) -> None:
  """Update the tables and numbers of all pages."""
  full = [make_row(x, results) for x in load().values()]
  short = [make_short_row(find(x), results) for x in _HIGHLIGHTS.split()]
  above = os.path.dirname(os.path.abspath(results))
  for path in list_pages(results):
    with open(path) as file_:
      text = file_.read()
    new = insert(text, short if os.path.dirname(path) == above else full)
    new = _NUMBER.sub(functools.partial(_show_number, results), new)
    if new != text:
      with files.atomic_write(path) as file_:
        file_.write(new)


def list_pages(results: str) -> list[str]:
  """Return the paths of all pages that may contain results."""
  above = os.path.dirname(os.path.abspath(results))
  places = f'{above}/README.md', f'{above}/docs/**/*.md', f'{results}/**/*.md'
  return [x for y in places for x in sorted(glob.glob(y, recursive=True))]


def _show_number(results, match):
  """Return a marker followed by its number."""
  entry, step = find(match[2]), match[3]
  folder = os.path.join(results, entry.name)
  if not step:
    return match[1] + show(entry, _outcomes(read_runs(folder)))
  means = [
    values[steps <= int(step)][-_LATEST:].mean()
    for steps, values in curves.read(os.path.join(folder, curves.FILE)).values()
  ]
  return f'{match[1]}{statistics.mean(means):.0f}'


def insert(text: str, rows: list[dict[str, str]]) -> str:
  """Return a text with a table between its markers, if present."""
  lines = [[*rows[0]], ['---'] * len(rows[0]), *(x.values() for x in rows)]
  table = '\n'.join(f'| {" | ".join(x)} |' for x in lines)
  first, last = MARKERS
  new = f'{first}\n\n{table}\n\n{last}'
  return re.sub(f'{first}.*{last}', lambda unused: new, text, flags=re.DOTALL)


def make_row(entry: Entry, results: str) -> dict[str, str]:
  """Return the cells of an entry by column title."""
  name, runs = entry.name, read_runs(os.path.join(results, entry.name))
  measured = f'{entry.measure}: {bars.describe(entry.bar)}'
  if figures.shows_reached(entry, runs):
    measured += f' ([share of seeds]({name}/{figures.REACHED}))'
  original = _compare(entry, results)
  if original and not entry.reference.endswith('.csv'):
    measured += f' ({entry.reference}: {original})'
    original = ''
  return {
    'result': f'[{name}]({name}/{figures.FILE})' if runs else name,
    'what': entry.meaning,
    'published': entry.published or '-',
    'measured': measured,
    'original code, today': original or '-',
    'ours': describe(entry, runs) + _improve(entry, runs, results),
    'state': judge(entry, runs),
    'cost per seed': show_cost(entry, runs),
  }


def make_short_row(entry: Entry, results: str) -> dict[str, str]:
  """Return the cells of an entry in README.md by column title."""
  runs = read_runs(os.path.join(results, entry.name))
  published = [
    f'{value:g} at {shorten(steps)} steps'
    for steps, value in entry.levels.items()
  ]
  if entry.reference.endswith('.csv'):
    published.append(f'original code: {_compare(entry, results)}')
  what = entry.measure
  if entry.bar.in_steps:
    word = 'until {} stays' if entry.bar.kind == 'stay' else 'to {}'
    what = f'steps {word.format(what)} {entry.bar.level:g}'
  hours = statistics.mean([x['cpu_hours'] for x in runs.values()] or [math.nan])
  ours = show(entry, _outcomes(runs))
  if len(runs) == 1 or not entry.bar.in_steps:
    ours += f' ({len(runs)} {_seeds(runs)})'
  return {
    'result': f'[{entry.meaning}](results/{entry.name}/{figures.FILE})',
    'measure': what,
    'published, or original code today': '; '.join(published) or '-',
    'ours': f'{ours}: {_judge_bar(entry, runs)}',
    'cost on one core': (
      f'{hours:.1f} h' if hours >= 1 else f'{60 * hours:.0f} min'
    ),
  }


def describe(entry: Entry, runs: Runs) -> str:
  """Describe measured numbers, seeds and steps."""
  if not runs:
    return '-'
  steps = sorted({x['steps'] for x in runs.values()})
  most = ' to '.join(f'{x:,}' for x in dict.fromkeys([steps[0], steps[-1]]))
  text = show(entry, _outcomes(runs))
  seeds = ', '.join(map(str, runs))
  if len(runs) > _FEW and [*runs] == [*range(len(runs))]:
    seeds = f'0 to {len(runs) - 1}'
  text += f' ({_seeds(runs)} {seeds}; {most} steps)'
  played = [x['evaluation'] for x in runs.values() if x.get('evaluation')]
  if played:
    mean = statistics.mean(x['mean'] for x in played)
    # A bar of kind `played` already shows these episodes.
    value = '' if entry.bar.kind == 'played' else f' {mean:.4g}'
    text += f'; trained agent{value} in {played[0]["episodes"]} episodes'
    text += ' per seed' * (len(played) > 1)
  if entry.check and entry.check.reason:
    text += f'; that of seed {entry.check.seed} is shipped, as '
    text += entry.check.reason
  return text


def judge(entry: Entry, runs: Runs) -> str:
  """Describe the state of a result."""
  if not runs:
    return f'not run: {_estimate(entry)}' + ' per seed' * (len(entry.seeds) > 1)
  words = [_judge_bar(entry, runs)]
  complete = sum(x['complete'] for x in runs.values())
  if complete < len(entry.seeds):
    words.append(f'{complete} of {len(entry.seeds)} seeds complete')
  if entry.reduced:
    words.append(entry.reduced)
  return '; '.join(words)


def show_cost(entry: Entry, runs: Runs) -> str:
  """Return the CPU hours per seed, with an estimate for incomplete runs."""
  if not runs:
    return _estimate(entry)
  text = f'{statistics.mean(x["cpu_hours"] for x in runs.values()):.2g} CPU h'
  if not all(x['complete'] for x in runs.values()):
    text += f' so far, {_estimate(entry)} in all'
  return text


def show(entry: Entry, outcomes: Sequence[intervals.Outcome]) -> str:
  """Summarise several seeds as one number and its uncertainty.

  Args:
    entry: Entry of the outcomes.
    outcomes: One per seed, with NaN for numbers not measured.
  """
  numbers = [x.number for x in outcomes]
  if entry.bar.in_steps:
    half, count = intervals.median_time(outcomes), len(outcomes)
    reached = sum(map(math.isfinite, numbers))
    text = f'{half:,.0f}' if math.isfinite(half) else 'not within these steps'
    return text if count == 1 else f'{text} ({reached} of {count} seeds)'
  known = [x for x in numbers if math.isfinite(x)]
  if len(known) < _FEW:
    return ', '.join(f'{x:.4g}' for x in known) or 'not measured'
  mean = intervals.interquartile_mean(np.array(known))
  low, high = intervals.interval(intervals.interquartile_mean, known)
  return f'{mean:.4g} [{low:.4g}, {high:.4g}]'


def _outcomes(runs):
  """Return the outcomes of runs; null in JSON becomes infinity."""
  return [
    intervals.Outcome(
      math.inf if x['measured'] is None else x['measured'], x['steps']
    )
    for x in runs.values()
  ]


def read_outcomes(entry: Entry, results: str) -> list[intervals.Outcome]:
  """Return the outcomes of the reference curves."""
  found = curves.read_reference(entry, results).values()
  return [bars.read_outcome(entry.bar, x) for x in found]


def _improve(entry, runs, results):
  """Describe how often our seeds do better than those of the original."""
  ours, original = _outcomes(runs), read_outcomes(entry, results)
  few = min(len(ours), len(original)) < _FEW
  if few or not entry.reference.endswith('.csv'):
    return ''
  steps = entry.bar.in_steps
  share, (low, high) = intervals.improvement(ours, original, steps)
  word = 'earlier' if steps else 'better'
  return (
    f'; {word} than the original with probability {share:.2f} '
    f'[{low:.2f}, {high:.2f}]'
  )


def _judge_bar(entry, runs):
  """Describe whether the bar is met, a published one or our own."""
  verdicts = [x['reached'] for x in runs.values() if x['reached'] is not None]
  if not verdicts:
    missing = all(x['measured'] is None for x in runs.values())
    skipped = missing and not entry.bar.in_steps
    return 'not measured' if skipped else 'no threshold'
  word = 'reproduced' if entry.reproduces else 'own threshold met'
  if not any(verdicts):
    word = 'not reproduced' if entry.reproduces else 'own threshold missed'
  elif not all(verdicts):
    word += f' by {sum(verdicts)} of {len(verdicts)} seeds'
  return word + f' ({entry.reason})' * bool(entry.reason)


def _compare(entry, results):
  """Summarise the reference curves; empty without any."""
  found = read_outcomes(entry, results)
  single = len(found) == 1 and entry.reference.endswith('.csv')
  return show(entry, found) + ' (1 seed)' * single if found else ''


def _estimate(entry):
  where = 'a GPU' if entry.gpu else f'{entry.cores} core(s)'
  return f'about {entry.hours:g} h on {where}'


def _seeds(runs):
  return 'seeds' if len(runs) > 1 else 'seed'
