"""Train with MPI, then compare the weights of all processes.

Prints, too, how many finished episodes wait for the next update in all.

Started by `test_mpi_training.py`; arguments are those of `agents.train_ppo`.
"""

import hashlib

from agents import train_ppo
from agents.run import mpi
from agents.tools.tf1 import tf

_hashes = []
_stored = []


class Session(tf.Session):
  """Remembers the weights that it has when it ends."""

  def __exit__(self, *args):
    values = self.run(tf.trainable_variables())
    data = b''.join(x.tobytes() for x in values)
    _hashes.append(hashlib.sha256(data).hexdigest())
    (index,) = [
      x for x in tf.global_variables() if x.op.name == 'memory_index/index'
    ]
    _stored.append(int(self.run(index)))
    super().__exit__(*args)


def main():
  tf.Session = Session
  assert train_ppo.run() == 0
  found = mpi.world().allgather(_hashes)
  assert all(len(x) == 1 for x in found)
  stored = sum(mpi.world().allgather(_stored), [])
  if mpi.world().Get_rank() == 0:
    print(f'{sum(stored)} episodes are stored.', flush=True)
    same = all(x == found[0] for x in found)
    word = 'same' if same else 'different'
    print(f'Weights of {len(found)} processes: {word}.', flush=True)


if __name__ == '__main__':
  main()
