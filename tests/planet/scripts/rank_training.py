"""Train with MPI, and compare the weights of all ranks after every step.

Started by `test_rank_training.py`; arguments are those of the program.
"""

import os
import sys

from agents.run import mpi
from agents.tools.mpi_ops import hash_values
from agents.tools.tf1 import tf
from planet.scripts import train
from planet.training.trainer import Trainer


def main():
  comm, hashes, execute = mpi.world(), [], Trainer._execute

  def compare(self, sess, *args):
    result = execute(self, sess, *args)
    found = comm.allgather(hash_values(sess.run(tf.trainable_variables())))
    assert len(set(found)) == 1, found
    hashes.append(found[0])
    return result

  Trainer._execute = compare
  print(f'Rank {comm.Get_rank()} is process {os.getpid()}.', flush=True)
  code = train.run()
  if comm.Get_rank() == 0:
    different = len(set(hashes))
    print(f'{len(hashes)} steps, {different} weights.', flush=True)
  return code


if __name__ == '__main__':
  sys.exit(main())
