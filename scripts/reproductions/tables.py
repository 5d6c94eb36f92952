"""Records of runs as JSON, and tables of results."""

import functools
import glob
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
_LAST = 5
_HIGHLIGHTS = (
  'her_reach her_push her_pick ppo_pendulum ppo_swingup '
  'planet_balance_hour planet_swingup_hour carla_loop'
)
_ROW = '{:24} {:>5} {:>5} {:>6} {:>4}  {}'

# Results of `collecting.make_line` by seed.
Runs = dict[int, dict[str, Any]]


def read_runs(folder: str) -> Runs:
  """Return the records of all seeds; empty if there are no runs."""
  path = os.path.join(folder, RUNS)
  if not os.path.exists(path):
    return {}
  return {int(k): v for k, v in files.read_plain(path).items()}


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
  short = [make_row(find(x), results, False) for x in _HIGHLIGHTS.split()]
  short.insert(-1, make_row_of_six(results))
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
  return f'{match[1]}{_mean_at(folder, int(step), _LATEST):.0f}'


def _mean_at(folder, step, count):
  """Return the mean of all seeds' last evaluations by a step, NaN if none."""
  found = curves.read(os.path.join(folder, curves.FILE)).values()
  means = [y[x <= step][-count:].mean() for x, y in found if min(x) <= step]
  return statistics.mean(means or [math.nan])


def make_row_of_six(results: str) -> dict[str, str]:
  """Return the row of README.md on the six tasks of PlaNet's paper."""
  above, hours = [], []
  for name in figures.SIX:
    folder = os.path.join(results, name)
    runs = read_runs(folder)
    # Runs under way have fewer steps.
    if runs and all(x['complete'] for x in runs.values()):
      published = find(name).levels[figures.SIX_STEP]
      above.append(_mean_at(folder, figures.SIX_STEP, _LAST) >= published)
      hours += [
        x['cpu_hours'] * figures.SIX_STEP / x['steps'] for x in runs.values()
      ]
  missing = len(figures.SIX) - len(above)
  rest = f' ({missing} not complete yet)' if missing else ''
  return {
    'result': (
      '[PlaNet `cpu`, six tasks of the paper at 100k steps]'
      f'(results/{figures.SIX_FILE})'
    ),
    'measure': 'return, mean of the last five tests',
    'published, or original code today': (
      'values of the full size, quoted by CURL; 0 for cup_catch'
    ),
    'ours': f'{sum(above)} of 6 at or above{rest}',
    'cost per seed': _show_hours(statistics.mean(hours)) if hours else '-',
  }


def insert(text: str, rows: list[dict[str, str]]) -> str:
  """Return a text with a table between its markers, if present."""
  lines = [[*rows[0]], ['---'] * len(rows[0]), *(x.values() for x in rows)]
  table = '\n'.join(f'| {" | ".join(x)} |' for x in lines)
  first, last = MARKERS
  new = f'{first}\n\n{table}\n\n{last}'
  return re.sub(f'{first}.*{last}', lambda unused: new, text, flags=re.DOTALL)


def make_row(
  entry: Entry, results: str, detailed: bool = True
) -> dict[str, str]:
  """Return the cells of an entry by column title.

  Args:
    entry: Entry.
    results: Folder of all results.
    detailed: Whether this is for the page in `results`, where details follow,
      rather than for README.md.
  """
  name, runs = entry.name, read_runs(os.path.join(results, entry.name))
  published = [
    f'{value:g} at {shorten(steps)} steps'
    for steps, value in entry.levels.items()
  ]
  if entry.has_original:
    found = _compare(entry, results) or 'not run'
    published.append(f'original code: {found}')
  link = f'{"" if detailed else "results/"}{name}/{figures.FILE}'
  ours = show(entry, _outcomes(runs)) if runs else '-'
  if runs and (len(runs) == 1 or not entry.bar.in_steps):
    ours += f' ({_count(len(runs), "seed")})'
  details = _detail(entry, runs, results) if detailed else ''
  return {
    'result': f'[{entry.meaning}]({link})' if runs else entry.meaning,
    'measure': entry.what,
    'published, or original code today': '; '.join(published) or '-',
    'ours': f'{ours}: {_judge_bar(entry, runs, results)}{details}',
    'cost per seed': show_cost(entry, runs),
  }


def _detail(entry, runs, results):
  """Return what a reader of the page can unfold under a row."""
  lines = {
    'name': f'`{entry.name}`',
    'published': entry.published,
    'measured': bars.describe(entry.bar),
    'ours': describe(entry, runs),
    'state': describe_state(entry, runs),
  }
  if entry.has_original:
    original = _read_references(entry, results)
    lines['compare'] = bars.improve(entry.bar, _outcomes(runs), original)
  elif entry.reference:
    lines['compare'] = f'{entry.reference}: {_compare(entry, results)}'
  if figures.shows_reached(entry, runs):
    lines['curves'] = f'[share of seeds]({entry.name}/{figures.REACHED})'
  text = '<br>'.join(f'{k}: {v}' for k, v in lines.items() if v)
  return f'<details><summary>details</summary>{text}</details>'


def describe(entry: Entry, runs: Runs) -> str:
  """Describe measured numbers, seeds and steps."""
  if not runs:
    return '-'
  steps = sorted({x['steps'] for x in runs.values()})
  most = ' to '.join(f'{x:,}' for x in dict.fromkeys([steps[0], steps[-1]]))
  text = show(entry, _outcomes(runs))
  seeds = ', '.join(map(str, runs))
  if len(runs) > intervals.FEW and [*runs] == [*range(len(runs))]:
    seeds = f'0 to {len(runs) - 1}'
  word = 'seeds' if len(runs) > 1 else 'seed'
  text += f' ({word} {seeds}; {most} steps)'
  played = [x['evaluation'] for x in runs.values() if x.get('evaluation')]
  if played:
    mean = statistics.mean(x['mean'] for x in played)
    # A bar of kind `played` already shows these episodes.
    value = '' if entry.bar.kind == 'played' else f' {mean:.4g}'
    text += f'; trained agent{value} in {played[0]["episodes"]} episodes'
    text += ' per seed' if len(played) > 1 else ''
  if entry.check and entry.check.reason:
    text += f'; that of seed {entry.check.seed} is shipped, as '
    text += entry.check.reason
  return text


def describe_state(entry: Entry, runs: Runs) -> str:
  """Describe how complete and how comparable a result is."""
  complete = sum(x['complete'] for x in runs.values())
  text = f'{complete} of {len(entry.seeds)} seeds complete'
  return f'{text}; {entry.reduced}' if entry.reduced else text


def show_cost(entry: Entry, runs: Runs) -> str:
  """Return the hours per seed, with an estimate for incomplete runs.

  These are CPU hours, or hours by the clock on a GPU.
  """
  if not runs:
    return _estimate(entry)
  clock = 'GPU' if entry.gpu else 'CPU'
  key = 'wall_hours' if entry.gpu else 'cpu_hours'
  text = _show_hours(statistics.mean(x[key] for x in runs.values()), clock)
  if not all(x['complete'] for x in runs.values()):
    text += f' so far, {_estimate(entry)} in all'
  return text


def _show_hours(hours, clock='CPU'):
  return (
    f'{hours:.2g} {clock} h' if hours >= 1 else f'{60 * hours:.0f} {clock} min'
  )


def show(entry: Entry, outcomes: Sequence[intervals.Outcome]) -> str:
  """Summarize several seeds as one number and its uncertainty.

  Args:
    entry: Entry of the outcomes.
    outcomes: One per seed, with infinity or NaN for numbers not measured.
  """
  numbers = [x.number for x in outcomes]
  if entry.bar.in_steps:
    half, count = intervals.median_time(outcomes), len(outcomes)
    reached = sum(map(math.isfinite, numbers))
    text = f'{half:,.0f}' if math.isfinite(half) else 'not within these steps'
    return text if count == 1 else f'{text} ({reached} of {count} seeds)'
  known = [x for x in numbers if math.isfinite(x)]
  if len(known) < intervals.FEW:
    return ', '.join(f'{x:.4g}' for x in known) or 'not measured'
  mean = float(intervals.interquartile_mean(np.array(known)))
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


def _read_references(entry, results):
  """Return the outcomes of the reference curves."""
  found = curves.read_reference(entry, results).values()
  return bars.read_outcomes(entry.bar, found)


def _judge_bar(entry, runs, results):
  """Return whether the bar is met, a published one or our own, and its rule."""
  if not runs:
    return f'not run, {_estimate(entry)}'
  if not any(x['complete'] for x in runs.values()):
    # The last evaluations of a shorter run are not those that the bar is about.
    return 'not complete'
  verdicts = [x['reached'] for x in runs.values() if x['reached'] is not None]
  if not verdicts:
    missing = all(x['measured'] is None for x in runs.values())
    skipped = missing and not entry.bar.in_steps
    return 'not measured' if skipped else 'no threshold'
  word = 'own threshold met'
  if entry.reproduces:
    # A single curve of the original may be luck.
    seeds = len(_read_references(entry, results))
    few = f'agrees with {_count(seeds, "seed")} of the original'
    word = 'reproduced' if seeds >= intervals.FEW else few
  if not any(verdicts):
    word = 'not reproduced' if entry.reproduces else 'own threshold missed'
  elif not all(verdicts):
    word += f' by {sum(verdicts)} of {len(verdicts)} seeds'
  reason = f', {entry.reason}' if entry.reason else ''
  return f'{word} ({bars.describe(entry.bar)}{reason})'


def _compare(entry, results):
  """Summarize the reference curves; empty without any."""
  found = _read_references(entry, results)
  if not found:
    return ''
  notes = ['1 seed'] if len(found) == 1 and entry.has_original else []
  runs = read_runs(os.path.join(results, entry.name))
  last = max(x.end for x in found)
  # A gain depends on the steps that were taken.
  if entry.bar.kind == 'gain' and runs and last < _outcomes(runs)[0].end:
    notes.append(f'{last:,.0f} steps')
  note = f' ({", ".join(notes)})' if notes else ''
  return f'{show(entry, found)}{note}'


def _estimate(entry):
  where = 'a GPU' if entry.gpu else _count(entry.cores, 'core')
  return f'about {entry.hours:g} h on {where}'


def _count(number, word):
  return f'{number} {word}s' if number > 1 else f'{number} {word}'
