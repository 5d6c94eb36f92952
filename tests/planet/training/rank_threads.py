"""Ranks that are threads of one process, with the calls of mpi4py."""

import concurrent.futures
import functools
import pickle
import threading

import numpy as np

SECONDS = 60


class ThreadComm:
  """Communicator of a thread.

  Args:
    rank: Number of the thread.
    slots: List of an entry per thread, shared by all.
    barrier: Barrier of all threads.
  """

  def __init__(self, rank, slots, barrier):
    self._rank = rank
    self._slots = slots
    self._barrier = barrier

  def Get_rank(self):
    return self._rank

  def Get_size(self):
    return len(self._slots)

  def allgather(self, value):
    self._slots[self._rank] = pickle.dumps(value)
    self._barrier.wait()
    values = [pickle.loads(x) for x in self._slots]
    self._barrier.wait()
    return values

  def bcast(self, value, root=0):
    return self.allgather(value)[root]

  def allreduce(self, value):
    return sum(self.allgather(value))

  def Allreduce(self, source, target):
    np.copyto(target, functools.reduce(np.add, self.allgather(source)))

  def Ibarrier(self):
    return self

  def Test(self):
    self._barrier.wait()
    return True


def run(size, function):
  """Call a function with the communicator of each rank; returns the results.

  The first failure that is not due to another one is raised.
  """
  barrier = threading.Barrier(size, timeout=SECONDS)
  slots = [None] * size

  def work(rank):
    try:
      return function(ThreadComm(rank, slots, barrier))
    except BaseException:
      barrier.abort()
      raise

  with concurrent.futures.ThreadPoolExecutor(size) as pool:
    futures = [pool.submit(work, rank) for rank in range(size)]
  failures = [x.exception() for x in futures if x.exception()]
  failures.sort(key=lambda x: isinstance(x, threading.BrokenBarrierError))
  if failures:
    raise failures[0]
  return [x.result() for x in futures]
