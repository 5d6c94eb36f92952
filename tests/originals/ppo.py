"""Compare PPO with the PyBullet wheel: trainings on the pendulum.

Both sides use the same seeds. Their scores are equal until rounding errors have
grown, after one to four evaluations.
"""

import itertools
import os
from collections.abc import Iterator

import numpy as np

from tests.originals.cases import Case, relative

ORIGINAL = 'pybullet_envs/agents/train_ppo.py'
_SEEDS = 0, 2, 14, 18
# Training and evaluation phases in turn.
_PHASES = 2


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
  for seed in _SEEDS:
    scores = list(itertools.islice(train(seed), _PHASES))
    np.save(_path(out, side, seed), scores)


def compare(out: str) -> Iterator[Case]:
  """Yield one case per phase."""
  for seed in _SEEDS:
    original, ours = (
      np.load(_path(out, side, seed)) for side in ('original', 'ours')
    )
    for index, pair in enumerate(zip(original, ours)):
      kind = 'evaluation' if index % 2 else 'training'
      name = f'seed {seed}: {pair[0]:.2f}, score of {kind} {index // 2 + 1}'
      yield Case(name, 1, relative(*pair), 1e-4)


def _path(out, side, seed):
  return os.path.join(out, f'{side}-{seed}.npy')


def _train(seed):
  from agents import runs, train_ppo

  config = runs.prepare('pybullet_pendulum', overrides={'seed': seed})
  return train_ppo.train(config, False, threads=1)
