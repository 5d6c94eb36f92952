"""Compare whole trainings of HER by both programs, with one and two ranks.

Ours differs in three ways that only affect rounding: it acts with a copy of the
networks in NumPy, applies Adam by a fused operation, and lets TensorFlow fuse
layers. Without these, all numbers must be equal.
"""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from scripts import machine
from tests.originals.cases import Case, recorded

# Number of ranks, and of environments per rank.
_TRAININGS = {'1 rank, 1 environment': (1, 1), '2 ranks, 2 each': (2, 2)}
# Four epochs with one environment, two with several.
_FLAGS = '--env=FetchReach-v1 --num_timesteps=2000 --seed=0'


def run(side: str, clone: str, out: str) -> None:
  """Train with one side in separate processes."""
  for ranks, envs in _TRAININGS.values():
    code = (
      f'import sys; sys.path = {sys.path!r}; '
      f'from {__name__} import train; '
      f'train({side!r}, {clone!r}, {out!r}, {ranks}, {envs})'
    )
    command = ['python', '-W', 'ignore', '-c', code]
    if ranks > 1:
      command = f'mpirun --oversubscribe -n {ranks}'.split() + command
    environ = machine.environ(
      RCALL_NUM_CPU='1', OMPI_MCA_mpi_yield_when_idle='1'
    )
    subprocess.run(machine.resolve(command), check=True, env=environ)


def train(side: str, clone: str, out: str, ranks: int, envs: int) -> None:
  """Train in this process; write the weights and all episodes."""
  if side == 'original':
    from tests.originals import her_original

    her_original.prepare(clone)
    from baselines import run as program
    from baselines.her import rollout

    start = program.main
  else:
    from baselines_her import rollout
    from baselines_her import run as program

    start = program.run
    _round_like_the_original()
  from mpi4py import MPI

  played: list[dict[str, Any]] = []
  worker = rollout.RolloutWorker
  worker.generate_rollouts = recorded(worker.generate_rollouts, played)
  path = _path(out, side, ranks)
  program_flags = [*_FLAGS.split(), f'--num_env={envs}', '--alg=her']
  start(
    ['her', *program_flags, f'--log_path={path}', f'--save_path={path}.pkl']
  )
  rank = MPI.COMM_WORLD.Get_rank()
  episodes: Any = {
    f'{index} {key}': np.array(value)
    for index, episode in enumerate(played)
    for key, value in episode.items()
    # Added when the original stores an episode.
    if key not in ('o_2', 'ag_2')
  }
  episodes['drawn next'] = np.random.uniform(size=3)
  np.savez(f'{path}-{rank}.npz', **episodes)


def compare(out: str) -> Iterator[Case]:
  """Yield cases for the episodes and the final weights."""
  import joblib

  for name, (ranks, _) in _TRAININGS.items():
    paths = [_path(out, side, ranks) for side in ('original', 'ours')]
    both = [
      {f'{rank} {k}': v for rank in range(ranks) for k, v in _read(x, rank)}
      for x in paths
    ]
    yield _same(f'training, {name}: episodes', *both)
    both = [joblib.load(f'{x}.pkl') for x in paths]
    yield _same(f'training, {name}: weights', *both)


def _path(out, side, ranks):
  return os.path.join(out, f'training-{side}-{ranks}')


def _read(path, rank):
  with np.load(f'{path}-{rank}.npz') as data:
    return [(key, data[key]) for key in data]


def _same(name, original, ours):
  """Return a case whose difference is the fraction of different arrays."""
  differ = [
    key not in ours or not np.array_equal(value, ours[key])
    for key, value in original.items()
  ]
  numbers = sum(x.size for x in original.values())
  return Case(name, numbers, float(np.mean(differ)), 0.0)


def _round_like_the_original():
  from agents.tools.tf1 import tf
  from baselines_her import ddpg, mpi

  # As in an InteractiveSession, which does not fuse layers.
  graph_options = tf.GraphOptions(place_pruned_graph=True)
  tf.ConfigProto = functools.partial(
    tf.ConfigProto, graph_options=graph_options
  )

  def define_update(adam, gradients, stepsize):
    gradients = adam._combine(gradients)
    t = tf.cast(tf.assign_add(adam._t, 1), tf.float64)
    stepsize = stepsize * tf.sqrt(1 - adam.beta2**t) / (1 - adam.beta1**t)
    updates = []
    for x, m, v, gradient in zip(adam.var_list, adam._m, adam._v, gradients):
      mean = adam.beta1 * m + (1 - adam.beta1) * gradient
      square = adam.beta2 * v + (1 - adam.beta2) * (gradient * gradient)
      mean, square = tf.assign(m, mean), tf.assign(v, square)
      root = tf.cast(tf.sqrt(square) + adam.epsilon, tf.float64)
      step = -stepsize * tf.cast(mean, tf.float64) / root
      updates.append(
        tf.assign(x, tf.cast(tf.cast(x, tf.float64) + step, tf.float32))
      )
    return tf.group(*updates)

  mock.patch.object(mpi.MpiAdam, 'define_update', define_update).start()
  mock.patch.object(
    ddpg.DDPG, 'fixed_weights', lambda *_, **unused: contextlib.nullcontext()
  ).start()
