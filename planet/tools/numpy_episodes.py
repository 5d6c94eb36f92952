"""Datasets of training chunks from recorded episodes."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from agents.envs.wrappers import to_32_bit
from agents.tools import graph_errors, nested
from agents.tools.tf1 import tf
from planet.envs.collect_dataset import ACTION_REPEAT
from planet.tools import loaders
from planet.tools.attr_dict import AttrDict
from planet.tools.chunk_sequence import chunk_sequence
from planet.tools.loaders import *  # noqa: F403
from planet.tools.loaders import _permuted as _permuted
from planet.tools.loaders import _sample as _sample


def numpy_episodes(
  train_dir: str,
  test_dir: str,
  shape: Sequence[int],
  reader: Callable[[str], loaders.Episode] | None = None,
  loader: Callable | None = None,
  num_chunks: int | None = None,
  preprocess_fn: Callable | None = None,
  seed: int | None = None,
) -> AttrDict:
  """Read episodes from two folders as batches of chunks.

  Renames episodes that are damaged or differ from the first one in keys, kinds
  of numbers or shapes. Integers other than uint8 become float32.

  Args:
    train_dir: Folder of .npz episodes for training.
    test_dir: Folder of .npz episodes for testing.
    shape: Tuple of batch size and chunk length.
    reader: Function from filename to a dict of arrays [time, ...]; by default
      `episode_reader`.
    loader: Function from reader, directory and batch size to a generator of
      episodes; by default `reload_loader`.
    num_chunks: Number of chunks per episode; see `chunk_sequence`.
    preprocess_fn: Function applied to batches of images.
    seed: Seed for the order of episodes. Each loader then uses its own random
      generator, because both run in threads. Batches are not read in advance:
      it would depend on time which new episodes they are chosen from.

  Returns:
    AttrDict of the datasets `train` and `test`. Their elements are dicts of
    tensors [batch, chunk length, ...], and `length` int32 [batch].

  Raises:
    ValueError: If the training folder has no readable episode.
  """
  reader = reader or episode_reader
  loader = loader or loaders.reload_loader
  example = _first_episode(reader, train_dir)
  checked = functools.partial(_read_like, example, reader)

  # AutoGraph would take a second to translate the functions of the dataset.
  @tf.autograph.experimental.do_not_convert
  def define(directory, seed):
    kwargs = {} if seed is None else {'seed': seed}
    dataset = _define_dataset(
      lambda: loader(checked, directory, shape[0], **kwargs), example
    )
    dataset = dataset.flat_map(
      lambda x: tf.data.Dataset.from_tensor_slices(
        chunk_sequence(x, shape[1], True, num_chunks)
      )
    )
    dataset = dataset.batch(shape[0], drop_remainder=True)
    if preprocess_fn and 'image' in example:
      # Parallel calls share random numbers in any order, so seeded runs would
      # differ.
      parallel = 10 if tf.get_default_graph().seed is None else None
      dataset = dataset.map(
        lambda x: {**x, 'image': preprocess_fn(x['image'])}, parallel
      )
    # Nothing here needs autotuning, and closing the session would wait up to a
    # minute for its thread.
    options = tf.data.Options()
    options.autotune.enabled = False
    if seed is None:
      dataset = dataset.prefetch(10)
    return dataset.with_options(options)

  return AttrDict(
    train=define(train_dir, seed),
    test=define(test_dir, None if seed is None else seed + 1),
  )


def episode_reader(
  filename: str,
  resize: float | None = None,
  max_length: int | None = None,
  action_noise: float | None = None,
) -> loaders.Episode:
  """Read one episode and convert 64-bit numbers to 32 bits.

  Args:
    filename: Path of an .npz file.
    resize: Factor for the image size.
    max_length: Maximum number of steps.
    action_noise: Standard deviation of noise added to the actions.

  Returns:
    Dict of the recorded arrays [time, ...] and `return`, the cumulative sum
    of the rewards.
  """
  with np.load(filename) as archive:
    names = [x for x in archive.files if x != ACTION_REPEAT]
    episode = {key: to_32_bit(archive[key]) for key in names}
  if max_length:
    episode = {key: value[:max_length] for key, value in episode.items()}
  episode['return'] = np.cumsum(episode['reward'], dtype=np.float32)
  if resize and resize != 1:
    from scipy import ndimage

    factors = (1, resize, resize, 1)
    episode['image'] = ndimage.zoom(episode['image'], factors)
  if action_noise:
    episode['action'] = episode['action'] + np.random.normal(
      0, action_noise, episode['action'].shape
    ).astype(np.float32)
  return episode


def _first_episode(reader, directory):
  for filename in loaders.list_episodes(directory):
    episode = loaders.read_episode(reader, filename)
    if episode is not None:
      # Older versions recorded an episode of whole numbers as integers.
      return {
        key: value.astype(np.float32) if value.dtype.kind == 'i' else value
        for key, value in episode.items()
      }
  raise ValueError(
    f'There are no readable episodes in {directory}; collect some first.'
  )


def _define_dataset(episodes, example):
  """Define a dataset of episodes from a function that returns a generator."""
  dtypes = nested.map(lambda x: tf.as_dtype(x.dtype), example)
  shapes = nested.map(lambda x: (None,) + x.shape[1:], example)
  read = graph_errors.remember(next)
  return tf.data.Dataset.from_generator(
    lambda: iter(functools.partial(read, episodes()), None), dtypes, shapes
  )


def _read_like(example, reader, filename):
  """Read an episode and compare its arrays to an example.

  Raises:
    ValueError: If they differ in key, dtype or shape.
  """
  episode = reader(filename)
  for key in episode.keys() & example.keys():
    dtype = example[key].dtype
    if np.can_cast(episode[key].dtype, dtype, 'same_kind'):
      episode[key] = episode[key].astype(dtype, copy=False)
  expected, found = _describe(example), _describe(episode)
  if found != expected:
    raise ValueError(f'it has {found} instead of {expected}')
  lengths = {key: len(value) for key, value in episode.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(f'its arrays differ in length: {lengths}')
  return episode


def _describe(episode):
  return {
    key: f'{value.dtype.name} {["time"] + list(value.shape[1:])}'
    for key, value in sorted(episode.items())
  }
