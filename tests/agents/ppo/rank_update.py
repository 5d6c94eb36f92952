"""An update of PPO by several ranks; the first one repeats it alone.

Run under mpirun; prints the means of both as JSON.
"""

import json

import numpy as np

from agents.ppo import update
from agents.run import mpi
from agents.tools import AttrDict
from agents.tools.tf1 import tf
from tests.agents.ppo import recorded

SIZES = {
  'policy_layers': np.array([4]),
  'value_layers': np.array([4]),
  'action_size': np.array(1),
}
EPISODES, TIME = 4, 5
CONFIG = AttrDict(
  update_every=EPISODES,
  update_epochs=3,
  discount=0.9,
  gae_lambda=None,
  kl_target=1e-4,
  kl_cutoff_factor=2,
  kl_cutoff_coef=10,
)


def compute(rows, comm):
  """Scalars of the summary of an update on some rows of all episodes."""
  random = np.random.RandomState(0)

  def draw(*shape):
    return random.normal(size=(EPISODES, TIME, *shape))[rows].astype(np.float32)

  with tf.Graph().as_default(), tf.Session() as sess:
    tf.set_random_seed(1)
    network = recorded.define_network(SIZES, False)
    observ = tf.constant(draw(3))
    length = tf.constant(np.full(EPISODES, TIME, np.int32)[rows])
    family = type(network(observ, length).policy)
    mean, logstd = 0.1 * draw(1), 0.1 * draw(1) - 1
    policy = family(tf.constant(mean), tf.constant(logstd))
    episodes = update.Episodes(
      observ, tf.constant(0.3 * draw(1)), policy, tf.constant(draw()), length
    )
    penalty = tf.get_variable('penalty', initializer=1.0)
    # Adam would make steps out of rounding.
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    summary = update.define_update(
      episodes, network, optimizer, penalty, CONFIG, comm
    )
    sess.run(tf.global_variables_initializer())
    found = recorded.scalars(sess.run(summary))
  return {k: v for k, v in found.items() if k.startswith(('avg', 'mean'))}


def main():
  comm = mpi.world()
  rank = comm.Get_rank()
  # Ranks of one and of three episodes.
  together = compute([slice(0, 1), slice(1, None)][rank], comm)
  if rank == 0:
    print(json.dumps([together, compute(slice(None), None)]))


if __name__ == '__main__':
  main()
