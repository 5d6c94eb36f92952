"""Environments over hosts: what is split, and what is joined."""

import functools
import os

import numpy as np
import pytest

from agents.envs import vector
from tests import processes, scripted_envs

both = pytest.mark.parametrize('workers', [0, 2])


class Adding(vector.Group):
  """Adds numbers to the lengths of its environments."""

  def add(self, numbers, scale):
    return [env.length + scale * x for env, x in zip(self.envs, numbers)]

  def reset(self, rows):
    return np.array([self.envs[row].length for row in rows])


@both
def test_split_and_join(workers):
  """Positional arguments are split, the others are not."""
  lengths = (2, 3, 4, 5, 6)
  makers = [functools.partial(scripted_envs.VectorEnv, x) for x in lengths]
  with processes.time_limit(60):
    envs = vector.Vector(Adding, makers, workers)
    try:
      parts = envs.call('add', np.arange(5), scale=10)
      assert [len(x) for x in parts] == ([3, 2] if workers else [5])
      assert vector.join(parts) == [2, 13, 24, 35, 46]
      assert envs.reset([4, 0, 3]).tolist() == [6, 2, 5]
      assert envs.reset(np.array([1])).tolist() == [3]
      assert [envs[index].length for index in (0, 3, -1)] == [2, 5, 6]
      assert (envs[4].pid == os.getpid()) == (not workers)
      assert len(vector.join(envs.get('spaces'))) == 5
    finally:
      envs.close()


def test_join():
  parts = [({'a': np.ones(2)}, (1,), [2]), ({'a': np.zeros(1)}, (3,), [])]
  observ, infos, rows = vector.join_transitions(parts)
  assert observ['a'].tolist() == [1, 1, 0]
  assert infos == (1, 3) and rows == [2]


def test_failing_constructor_closes_the_others():
  closed = []

  class Env:
    def close(self):
      closed.append(self)
      raise OSError

  with pytest.raises(ValueError, match='broken constructor'):
    vector.Vector(Adding, [Env, Env, scripted_envs.fail_to_construct], 0)
  assert len(closed) == 2
