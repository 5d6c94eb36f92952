"""Trained agents: evaluated after training, shipped, and checked again."""

import importlib
import json
import math
import os
import shutil
from typing import Any

import numpy as np

from agents import evaluation
from agents.run import errors, files
from agents.run import folder as run_folder
from scripts.reproductions import training
from scripts.reproductions.entry import Entry

AGENTS = 'agents'
_SHIPPED = 'shipped.json'
# Seeds of evaluations; none of them is one of a training.
_SEED = 9000


def evaluate(entry: Entry, seed: int, out: str) -> None:
  """Play the trained agent and keep the figures with the record of the run.

  The agent of the seed that is shipped is exported beside its run.

  Args:
    entry: What was trained.
    seed: Seed of the run.
    out: Folder of all runs.
  """
  folder = training.make_folder(entry, seed, out)
  record = training.read_record(folder)
  if not entry.check or 'evaluation' in record:
    return
  run = os.path.join(folder, 'run')
  record['evaluation'] = _play(entry, run, _SEED, entry.check.episodes)
  if seed == entry.check.seed:
    exported = os.path.join(folder, 'agent')
    shutil.rmtree(exported, ignore_errors=True)
    with _load(entry, run) as agent:
      agent.save(exported)
    _write_shipped(entry, exported, record['evaluation'])
  training.write_record(folder, record)


def check(entry: Entry, results: str, episodes: int | None = None) -> bool:
  """Play the shipped agent, compare and print; return whether it is as good.

  Args:
    entry: What was trained.
    results: Folder of all results.
    episodes: Number of episodes; that of the entry by default.

  Raises:
    UsageError: If no agent is shipped.
  """
  folder = find(entry, results)
  with open(os.path.join(folder, _SHIPPED)) as file_:
    shipped = json.load(file_)
  if episodes is None:
    assert entry.check, entry.name
    episodes = entry.check.episodes
  # Other episodes than those of the shipped figures.
  measured = _play(entry, folder, _SEED + 1, episodes)
  low, high = shipped['interval']
  inside = low <= measured['mean'] <= high
  print(
    f'{entry.name}: {entry.measure} {measured["mean"]:.4g} over {episodes} '
    f'episodes; shipped {shipped["mean"]:.4g}, interval {low:.4g} to '
    f'{high:.4g}: ' + ('inside.' if inside else 'OUTSIDE.')
  )
  return inside


def find(entry: Entry, results: str) -> str:
  """Return the folder of the shipped agent.

  Raises:
    UsageError: If no agent is shipped.
  """
  names = run_folder.find(os.path.join(results, AGENTS), _SHIPPED)
  known = {os.path.basename(x): x for x in names}
  if not entry.check or entry.name not in known:
    raise errors.UsageError(
      f'There is no shipped agent of {entry.name}; shipped are: '
      f'{", ".join(known) or "none at all"}.'
    )
  return known[entry.name]


def _load(entry, folder, seed=None):
  """Load the trained agent of a run or of a folder that is shipped."""
  package = {'ppo': 'agents', 'her': 'baselines_her', 'planet': 'planet'}
  # Planner and environments of PlaNet have one seed.
  more = {'seed': seed} if entry.system == 'planet' else {}
  return importlib.import_module(package[entry.system]).load(folder, **more)


def _play(entry, folder, seed, episodes) -> dict[str, Any]:
  """Play some episodes; return plain figures."""
  own = None if entry.system == 'planet' else seed
  with _load(entry, folder, seed) as agent:
    played = evaluation.evaluate(agent, episodes=episodes, seed=own)
  values = np.array(played.successes, float)
  if entry.measure == 'return':
    values = np.array(played.returns) / entry.reward_scale
  return {
    'measure': entry.measure,
    'mean': float(values.mean()),
    'std': float(values.std()),
    'episodes': episodes,
    'seed': seed,
  }


def _write_shipped(entry, folder, evaluation):
  """Write the figures of a shipped agent, and what a check may measure."""
  error = evaluation['std'] * math.sqrt(2 / evaluation['episodes'])
  margin = max(entry.check.tolerance, 3 * error)
  interval = [evaluation['mean'] - margin, evaluation['mean'] + margin]
  with files.atomic_write(os.path.join(folder, _SHIPPED)) as file_:
    json.dump({**evaluation, 'interval': interval}, file_, indent=1)
