"""Chunks of sequences, against `planet/chunk_sequence`."""

import collections

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools.chunk_sequence import chunk_sequence
from tests import golden, graphs

RANDOM = ['random_none', 'random_num1', 'random_num3']


def define(name):
  """Chunks for the settings of a recorded case."""
  data = golden.load('planet/chunk_sequence')
  config = {k: v.item() for k, v in data.below('cfg/' + name).items()}
  sequence = {key: tf.constant(data['in/' + key]) for key in 'xy'}
  return chunk_sequence(sequence, **config)


def assert_equal(actual, expected):
  assert sorted(actual) == sorted(expected)
  for key, value in expected.items():
    np.testing.assert_array_equal(actual[key], value, key)


@pytest.mark.parametrize('name', ['plain', 'plain_num2'])
def test_recorded_chunks(name):
  """Without randomness, exact."""
  expected = golden.load('planet/chunk_sequence').below('out/' + name)
  assert_equal(graphs.evaluate(define(name)), expected)


@pytest.mark.parametrize('name', RANDOM)
def test_recorded_offset(name, monkeypatch):
  """The recorded offset instead of the draw, and the bound of the draw."""
  data = golden.load('planet/chunk_sequence')
  expected = data.below('out/' + name)
  bounds = []

  def draw(low, high):
    bounds.append((low, high))
    return tf.constant(data[f'in/{name}/offset'])

  with graphs.recorded_uniform(monkeypatch, draw):
    chunks = define(name)
  (low, high), *others = bounds
  assert low == 0 and not others
  chunks['offset_exclusive_upper_bound'] = tf.convert_to_tensor(high)
  assert_equal(graphs.evaluate(chunks), expected)


@pytest.mark.parametrize('name', RANDOM)
def test_free_offsets(name):
  """All offsets occur, and all arrays are cut at the same place.

  With this many draws, an offset is missed once in a million runs.
  """
  data = golden.load('planet/chunk_sequence')
  upper = int(data[f'out/{name}/offset_exclusive_upper_bound'])
  chunks = define(name)
  firsts = data['in/x'][:, 0].tolist()
  assert len(set(firsts)) == len(firsts)
  starts = collections.Counter()
  with graphs.session() as sess:
    for _ in range(20 * upper):
      values = sess.run(chunks)
      start = firsts.index(values['x'].flat[0])
      starts[start] += 1
      for key in 'xy':
        flat = values[key].reshape((-1,) + values[key].shape[2:])
        expected = data['in/' + key][start : start + len(flat)]
        np.testing.assert_array_equal(flat, expected)
  assert sorted(starts) == list(range(upper))


@pytest.mark.parametrize('num_chunks', [None, 1])
def test_short_episode(num_chunks):
  """The message names both lengths (the original failed in the draw)."""
  sequence = {'x': tf.placeholder(tf.float32, [None, 2])}
  chunks = chunk_sequence(sequence, 5, num_chunks=num_chunks)
  with graphs.session() as sess:
    with pytest.raises(
      tf.errors.InvalidArgumentError,
      match=r'(?s)Episode of.*\b3\b.*too short for chunks of.*\b5\b.*steps',
    ):
      sess.run(chunks, {sequence['x']: np.zeros((3, 2))})
    values = sess.run(chunks, {sequence['x']: np.zeros((5, 2))})
  assert values['x'].shape == (1, 5, 2)


def test_given_length():
  """Steps after the given length are not used."""
  sequence = {'x': tf.range(10), 'length': tf.constant(7)}
  chunks = graphs.evaluate(chunk_sequence(sequence, 3, randomize=False))
  assert chunks['x'].tolist() == [[0, 1, 2], [3, 4, 5]]
  assert chunks['length'].tolist() == [3, 3]
