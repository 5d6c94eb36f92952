"""Checkpoints of several processes, with simulated communicators."""

import numpy as np
import pytest

from agents.ppo import gathering
from agents.ppo import memory as memory_lib
from agents.tools.tf1 import tf
from tests import graphs

CAPACITY, LENGTH = 4, 3


class Comm:
  """Communicator of one of several ranks, which are called one by one.

  Args:
    rank: Number of this process.
    sent: List of what the ranks before have sent; the last rank comes first.
  """

  def __init__(self, rank, sent):
    self._rank = rank
    self._sent = sent

  def Get_rank(self):
    return self._rank

  def gather(self, value, root=0):
    self._sent.insert(0, value)
    return list(self._sent) if self._rank == root else None


def define(rank, sent, count):
  """Memory with some episodes that hold their rank and number."""
  scope = f'memory{rank}'
  memory = memory_lib.EpisodeMemory([tf.zeros(())], CAPACITY, LENGTH, scope)
  index = tf.get_variable(
    f'index{rank}', (), tf.int32, tf.zeros_initializer(), use_resource=True
  )
  episodes = 10 * rank + np.arange(count)
  fill = memory.replace(
    [tf.constant(np.repeat(episodes[:, None], LENGTH, 1), tf.float32)],
    tf.range(1, count + 1),
    tf.range(count),
  )
  fill = tf.group(fill, index.assign(count))
  return (
    memory,
    index,
    fill,
    gathering.Gathering(memory, index, Comm(rank, sent)),
  )


def read(sess, memory, index):
  """Episodes and lengths, and the lengths of all rows."""
  count = sess.run(index)
  (values,), length = sess.run(memory.data(tf.range(count)))
  rest = sess.run(memory.length())[count:]
  assert not rest.any(), rest
  return values[:, 0].tolist(), length.tolist()


@pytest.mark.parametrize('counts', [(1, 2), (0, 2), (2, 0), (0, 0), (1, 1, 1)])
def test_each_episode_is_stored_once(counts):
  """And each process has its own again after that."""
  sent = []
  ranks = [define(rank, sent, count) for rank, count in enumerate(counts)]
  with graphs.session() as sess:
    sess.run([fill for _, _, fill, _ in ranks])
    before = [read(sess, *x[:2]) for x in ranks]
    for *_, gather in reversed(ranks[1:]):
      with gather.gathered(sess):
        pass
    memory, index, _, gather = ranks[0]
    with gather.gathered(sess):
      episodes, length = read(sess, memory, index)
      assert episodes == sum([x for x, _ in before], [])
      assert length == sum([x for _, x in before], [])
    assert [read(sess, *x[:2]) for x in ranks] == before


def test_restored_episodes_count_once():
  """All processes restore the same checkpoint; the first keeps them."""
  ranks = [define(rank, [], 2) for rank in range(2)]
  with graphs.session() as sess:
    sess.run([fill for _, _, fill, _ in ranks])
    for _, _, _, gather in ranks:
      gather.keep_once(sess)
    assert read(sess, *ranks[0][:2]) == ([0, 1], [1, 2])
    assert read(sess, *ranks[1][:2]) == ([], [])
