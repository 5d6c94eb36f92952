"""Train with MPI, then compare the weights of all processes.

Started by `test_mpi_training.py`; arguments are those of `agents.train_ppo`.
"""

import hashlib

from agents import train_ppo
from agents.run import mpi
from agents.tools.tf1 import tf

_hashes = []


class Session(tf.Session):
  """Remembers the weights that it has when it ends; starts quickly."""

  def __init__(self, target='', graph=None, config=None):
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    super().__init__(target, graph, config)

  def close(self):
    values = self.run(tf.trainable_variables())
    data = b''.join(x.tobytes() for x in values)
    _hashes.append(hashlib.sha256(data).hexdigest())
    super().close()


def main():
  tf.Session = Session
  assert train_ppo.run() == 0
  found = mpi.world().allgather(_hashes)
  assert all(len(x) == 1 for x in found)
  if mpi.world().Get_rank() == 0:
    same = all(x == found[0] for x in found)
    word = 'same' if same else 'different'
    print(f'Weights of {len(found)} processes: {word}.', flush=True)


if __name__ == '__main__':
  main()
