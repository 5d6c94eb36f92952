"""Evaluate, ship and check trained agents."""

import importlib
import math
import os
import shutil
from typing import Any

import numpy as np

from agents import evaluation
from agents.run import errors, files
from scripts.reproductions.entry import Entry
from scripts.reproductions.training import Trial

AGENTS = 'agents'
_SHIPPED = 'shipped.json'
# Seed of evaluations; no training uses it.
_SEED = 9000
_PACKAGES = {'ppo': 'agents', 'her': 'baselines_her', 'planet': 'planet'}


def evaluate(trial: Trial) -> None:
  """Evaluate the trained agent and store the result in the record of the run.

  Exports the agent of the shipped seed next to its run.
  """
  entry, record = trial.entry, trial.read()
  if 'evaluation' in record:
    return
  if entry.check:
    episodes = entry.check.episodes
  elif entry.bar.kind == 'played':
    episodes = entry.bar.count
  else:
    return
  played = _play(entry, trial.run, _SEED, episodes)
  record['evaluation'] = played
  if entry.check and trial.seed == entry.check.seed:
    shutil.rmtree(trial.exported, ignore_errors=True)
    with _load(entry, trial.run) as agent:
      agent.save(trial.exported)
    path = os.path.join(trial.exported, _SHIPPED)
    files.write_json(path, played, indent=1)
  trial.write(record)


def check(entry: Entry, results: str, episodes: int | None = None) -> bool:
  """Evaluate the shipped agent; print and return whether it is as good.

  Args:
    entry: Entry of the agent.
    results: Folder of all results.
    episodes: Number of episodes; default: as in the entry.

  Raises:
    UsageError: If no agent is shipped.
  """
  folder = os.path.join(results, AGENTS, entry.name)
  if not entry.check or not os.path.exists(folder):
    raise errors.UsageError(
      f'There is no shipped agent for {entry.name}; choose one in '
      f'{os.path.join(results, AGENTS)}.'
    )
  shipped = files.read_plain(os.path.join(folder, _SHIPPED))
  if episodes is None:
    episodes = entry.check.episodes
  # Use other episodes than the shipped numbers.
  mean = _play(entry, folder, _SEED + 1, episodes)['mean']
  error = shipped['std'] * math.sqrt(1 / shipped['episodes'] + 1 / episodes)
  margin = max(entry.check.tolerance, 3 * error)
  low, high = shipped['mean'] - margin, shipped['mean'] + margin
  inside = low <= mean <= high
  print(
    f'{entry.name}: {entry.measure} {mean:.4g} over {episodes} episodes; '
    f'shipped {shipped["mean"]:.4g}, interval {low:.4g} to {high:.4g}: '
    + ('inside.' if inside else 'OUTSIDE.')
  )
  return inside


def _load(entry, folder, **seed):
  """Load the trained agent of a run or a shipped folder."""
  return importlib.import_module(_PACKAGES[entry.system]).load(folder, **seed)


def _play(entry, folder, seed, episodes) -> dict[str, Any]:
  """Play episodes; return plain numbers."""
  # The planner and environments of PlaNet share one seed.
  is_planet = entry.system == 'planet'
  with _load(entry, folder, **({'seed': seed} if is_planet else {})) as agent:
    own = None if is_planet else seed
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
