"""Compare PPO with the PyBullet wheel: trainings with all configurations.

Both sides use the same seeds. Their scores are equal until rounding errors have
grown: on the pendulum after one to four evaluations, in tasks with contacts
within tens of steps. So all tasks but the pendulum have short episodes.
"""

import importlib
import itertools
import os
import types
from collections.abc import Iterator

import numpy as np

from tests.originals.cases import Case, relative

ORIGINAL = 'pybullet_envs/agents/train_ppo.py'
_SEEDS = 0, 2, 14, 18
# Training and evaluation phases in turn.
_PHASES = 2
_SHORT = {
  'num_agents': 5,
  'update_every': 5,
  'eval_episodes': 5,
  'max_length': 10,
}
_KUKA = 'pybullet_kuka_grasping'
_OTHERS = (
  _KUKA,
  'pybullet_doublependulum',
  'pybullet_pendulumswingup',
  'pybullet_cheetah',
  'pybullet_ant',
  'pybullet_humanoid',
  'pybullet_racecar',
  'pybullet_minitaur',
  'pybullet_duck_minitaur',
)
# These move by millimeters, and rounding shifts their contacts.
_LIMITS = {'pybullet_minitaur': 1e-4, 'pybullet_duck_minitaur': 2e-3}


def run(side: str, folder: str, out: str, clone: str | None = None) -> None:
  """Train with one side.

  Args:
    side: `original` or `ours`.
    folder: Folder that contains `pybullet_envs`.
    out: Folder for the files that `compare` reads.
    clone: See `ppo_original.prepare`.
  """
  if side == 'original':
    from tests.originals import ppo_original

    train = ppo_original.prepare(folder, clone)
  else:
    train = _train
  _fix_draws()
  for name in _OTHERS:
    settings = dict(_SHORT)
    if name == _KUKA:
      # All of them act in the first world of the process. Ours have processes
      # of their own, in which nothing would be fixed.
      settings.update(num_agents=1, env=_make_kuka)
    scores = list(itertools.islice(train(0, name, **settings), _PHASES))
    np.save(_path(out, side, name), scores)
  for seed in _SEEDS:
    scores = list(itertools.islice(train(seed), _PHASES))
    np.save(_path(out, side, seed), scores)


def compare(out: str) -> Iterator[Case]:
  """Yield one case per phase."""
  for what in (*_OTHERS, *_SEEDS):
    original, ours = (
      np.load(_path(out, side, what)) for side in ('original', 'ours')
    )
    title = what if what in _OTHERS else f'pendulum, seed {what}'
    for index, pair in enumerate(zip(original, ours)):
      kind = 'evaluation' if index % 2 else 'training'
      name = f'{title}: {pair[0]:.4g}, score of {kind} {index // 2 + 1}'
      limit = _LIMITS.get(what, 1e-5)
      if what in _SEEDS and kind == 'evaluation':
        # One of many episodes may end a step earlier.
        limit = 1e-3
      yield Case(name, 1, relative(*pair), limit)


def _path(out, side, what):
  return os.path.join(out, f'{side}-{what}.npy')


def _train(seed, name='pybullet_pendulum', **settings):
  from agents import runs, train_ppo

  config = runs.prepare(name, overrides={**settings, 'seed': seed})
  return train_ppo.train(config, False, threads=1)


def _fix_draws():
  """Take out what environments draw from generators of the whole process.

  No seed of the original reaches these: places of objects, masses.
  """
  bullet = 'pybullet_envs.bullet'
  fixed = types.SimpleNamespace(random=lambda: 0.5)
  for name in ('racecarGymEnv', 'kukaGymEnv'):
    vars(importlib.import_module(f'{bullet}.{name}'))['random'] = fixed
  module = importlib.import_module(f'{bullet}.minitaur_env_randomizer')
  module.MinitaurEnvRandomizer.randomize_env = lambda *unused: None


def _make_kuka():
  import gym

  return gym.make('KukaBulletEnv-v0', disable_env_checker=True).unwrapped
