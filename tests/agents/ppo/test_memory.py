"""Episodes in the graph, against `ppo/episode_memory`."""

import numpy as np
import pytest

from agents.ppo.memory import EpisodeMemory
from agents.tools.tf1 import tf
from tests import golden, graphs
from tests.agents.ppo import recorded

SHAPES = ((2,), (3,), ())


def make():
  data = golden.load('ppo/episode_memory')
  memory = EpisodeMemory(
    [tf.zeros(x) for x in SHAPES],
    int(data['capacity']),
    int(data['max_length']),
    'memory',
  )
  return memory, data


def define(memory, data, index):
  """Operation of a recorded step."""
  kind, prefix = str(data['operations'][index]), f'step{index:02d}_'
  rows = tf.constant(data[prefix + 'rows'])
  if kind == 'clear':
    return memory.clear(rows)
  values = [tf.constant(data[f'{prefix}in{number}']) for number in range(3)]
  if kind == 'append':
    return memory.append(values, rows)
  return memory.replace(values, tf.constant(data[prefix + 'new_length']), rows)


def test_recorded_operations():
  """The whole content after each operation, and some rows; exact."""
  memory, data = make()
  steps = [define(memory, data, x) for x in range(len(data['operations']))]
  everything, clear = memory.data(), memory.clear()
  rows = tf.constant(data['select_rows'])
  some, length = memory.data(rows), memory.length(rows)
  with graphs.session() as sess:
    for index, step in enumerate(steps):
      sess.run(step)
      check(sess.run(everything), data, f'step{index:02d}_')
    check(sess.run(some), data, 'select_')
    assert sess.run(length).tolist() == data['select_length'].tolist()
    before, _ = sess.run(everything)
    sess.run(clear)
    after, length = sess.run(everything)
  assert not length.any()
  np.testing.assert_equal(after, before)


def check(content, data, prefix):
  buffers, length = content
  assert length.tolist() == data[prefix + 'length'].tolist()
  for number, value in enumerate(buffers):
    np.testing.assert_array_equal(value, data[f'{prefix}buffer{number}'])


ERRORS = [
  ('append', 4, 0, 'capacity exceeded'),
  ('append', 0, 0, 'max length exceeded'),
  ('replace', 4, 1, 'capacity exceeded'),
  ('replace', 1, 6, 'max length exceeded'),
]


@pytest.mark.parametrize('kind, row, length, message', ERRORS)
def test_errors(kind, row, length, message):
  """What does not fit is named, and nothing changes."""
  memory, data = make()
  time = () if kind == 'append' else (int(data['max_length']),)
  values = [tf.ones((1,) + time + x) for x in SHAPES]
  holder, lengths = tf.placeholder(tf.int32, [1]), tf.placeholder(tf.int32, [1])
  args = (lengths,) if kind == 'replace' else ()
  operation = getattr(memory, kind)(values, *args, holder)
  everything = memory.data()
  with graphs.session() as sess:
    recorded.variable('memory/length').load([5, 0, 0, 0], sess)
    before = sess.run(everything)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
      sess.run(operation, {holder: [row], lengths: [length]})
    np.testing.assert_equal(sess.run(everything), before)


def test_constant_errors_come_early():
  """Already when the graph is built."""
  memory, _ = make()
  values = [tf.ones((1,) + x) for x in SHAPES]
  with pytest.raises(tf.errors.InvalidArgumentError, match='capacity'):
    memory.append(values, tf.constant([4]))
