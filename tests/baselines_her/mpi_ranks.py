"""What each rank does in the tests of several processes.

Run under mpirun: python -m tests.baselines_her.mpi_ranks FOLDER PART...
"""

import os
import sys

import numpy as np

from agents.run import mpi as mpi_tools
from agents.tools.tf1 import tf
from baselines_her import envs, her, library, logger, mpi, normalizer
from tests.baselines_her import test_library, toy


def recorded(rank):
  """The quantities of mpi_2ranks.npz."""
  data = toy.load('mpi_2ranks')
  result = {}
  mean, std, count = mpi.mpi_moments(data[f'mom_x_rank{rank}'])
  result.update(mom_mean=mean, mom_std=std, mom_count=count)
  result['average'] = her.mpi_average(float(data['mpi_average_in'][rank]))
  # Lists of different lengths, one of them empty.
  result['lists'] = her.mpi_average([[], [3.0, 4.0]][rank])
  # Lists of zeros count as many elements.
  result['zeros'] = her.mpi_average([[-50.0] * 10, [0.0] * 10][rank])
  with toy.session() as sess:
    with tf.variable_scope('n'):
      stats = normalizer.Normalizer(3, 0.01, 5, sess)
    sess.run(tf.global_variables_initializer())
    stats.update(data[f'norm_v_rank{rank}'])
    stats.recompute_stats()
    for name, value in toy.values(sess).items():
      result['norm_' + name.split('/')[1][:-2]] = value
    for scale in (0, 1):
      variable = tf.Variable(data[f'adam_init_rank{rank}'])
      sess.run(variable.initializer)
      adam = mpi.MpiAdam([variable], scale_grad_by_procs=bool(scale))
      adam.sync()
      weights = [sess.run(variable)]
      for gradient in data[f'adam_grads_rank{rank}']:
        adam.update(gradient, float(data['lr']))
        weights.append(sess.run(variable))
      result[f'theta{scale}'] = np.array(weights)
  return result


def train(rank, folder):
  """A short training; returns all variables."""
  envs.make = lambda *unused, **settings: toy.ToyPoint(10)
  formats = ['json'] if rank == 0 else []
  with toy.session() as sess, logger.scoped_configure(folder, formats):
    her.learn(
      network='mlp',
      env=toy.vec_env(10, [100 + rank, 200 + rank]),
      # The first rank decides; the other one would wait for ever.
      total_timesteps=120 * (1 + rank),
      seed=3,
      save_path=os.path.join(folder, 'policies'),
      override_params={
        'n_cycles': 2,
        'n_batches': 3,
        'batch_size': 8,
        'hidden': 8,
        'layers': 1,
        'buffer_size': 400,
        'n_test_rollouts': 2,
      },
    )
    return toy.values(sess)


def iterate():
  """A training as a library, without a folder; returns what both share."""
  records = library.train(test_library.ENV, None, 10, test_library.PARAMS, 1)
  (record,) = records
  (checkpoint,) = os.listdir(os.path.join(record['logdir'], 'checkpoints'))
  path = os.path.join(record['logdir'], 'checkpoints', checkpoint)
  return {'logdir': record['logdir'], 'files': sorted(os.listdir(path))}


def main(folder, *parts):
  mpi_tools.abort_on_errors()
  rank = mpi_tools.world().Get_rank()
  for part in parts:
    if part == 'fail' and rank == 1:
      raise RuntimeError('the second rank has a problem')
    with tf.Graph().as_default():
      result = {
        'recorded': lambda: recorded(rank),
        'train': lambda: train(rank, folder),
        'fail': lambda: train(rank, os.path.join(folder, 'fail')),
        'iterate': iterate,
      }[part]()
    result['size'] = mpi_tools.world().Get_size()
    np.savez(os.path.join(folder, f'{part}{rank}.npz'), **result)


if __name__ == '__main__':
  main(*sys.argv[1:])
