"""Datasets of training chunks from recorded episodes."""

import functools
from collections.abc import Callable, Collection, Sequence

import numpy as np

from agents.tools import graph_errors, nested
from agents.tools.tf1 import tf
from agents.tools.wrappers import to_32_bit
from planet.envs.collect_dataset import SCALARS
from planet.tools import episode_files, loaders
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
  shuffle_buffer: int = 0,
) -> AttrDict:
  """Read episodes from two folders as batches of chunks.

  Renames episodes that are damaged, too short for the chunks, or differ from
  the first one in keys, kinds of numbers or shapes. Numbers become float32,
  except images of uint8.

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
      which new episodes they are chosen from would then depend on timing.
    shuffle_buffer: Number of chunks from which each of a batch is chosen, 0 to
      keep their order.

  Returns:
    AttrDict of the datasets `train` and `test`. Their elements are dicts of
    tensors [batch, chunk length, ...], and `length` int32 [batch].

  Raises:
    ValueError: If the training folder has no readable episode.
  """
  reader = reader or episode_reader
  loader = loader or loaders.reload_loader
  checked = functools.partial(_read_long, reader, shape[1] * (num_chunks or 1))
  example = _first_episode(checked, train_dir)
  checked = functools.partial(_read_like, example, checked)

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
    if shuffle_buffer:
      dataset = dataset.shuffle(shuffle_buffer, seed)
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
  keys: Collection[str] | None = None,
) -> loaders.Episode:
  """Read one episode and convert 64-bit numbers to 32 bits.

  Args:
    filename: Path of an .npz file.
    resize: Factor for the image size.
    max_length: Maximum number of steps.
    action_noise: Standard deviation of noise added to the actions; whenever a
      file is read, it is the same.
    keys: Names of the arrays to read, among them `reward`; all by default.

  Returns:
    Dict of the recorded arrays [time, ...] and `return`, the cumulative sum
    of the rewards.

  Raises:
    OSError: If the file cannot be read for the moment.
    ValueError: If it is damaged, or its contents are not an episode.
  """
  arrays = episode_files.read(filename, keys)
  episode = {x: to_32_bit(y) for x, y in arrays.items() if x not in SCALARS}
  if max_length:
    episode = {key: value[:max_length] for key, value in episode.items()}
  episode['return'] = np.cumsum(episode['reward'], dtype=np.float32)
  if resize and resize != 1:
    from scipy import ndimage

    factors = (1, resize, resize, 1)
    episode['image'] = ndimage.zoom(episode['image'], factors)
  if action_noise:
    seed = np.frombuffer(filename.encode(), np.uint8)
    noise = np.random.RandomState(seed).normal(
      0, action_noise, episode['action'].shape
    )
    episode['action'] = (episode['action'] + noise).astype(np.float32)
  return episode


def _first_episode(reader, directory):
  for filename in loaders.list_episodes(directory):
    episode = loaders.read_episode(reader, filename)
    if episode is not None:
      # Older versions recorded an episode of whole numbers as integers.
      return {
        key: value if _is_image(value) else value.astype(np.float32)
        for key, value in episode.items()
      }
  raise ValueError(
    f'There are no readable episodes in {directory}; collect some first.'
  )


def _is_image(array):
  return array.dtype == np.uint8 and array.ndim > 2


def _define_dataset(episodes, example):
  """Define a dataset of episodes from a function that returns a generator."""
  dtypes = nested.map(lambda x: tf.as_dtype(x.dtype), example)
  shapes = nested.map(lambda x: (None,) + x.shape[1:], example)
  read = graph_errors.remember(next)
  return tf.data.Dataset.from_generator(
    lambda: iter(functools.partial(read, episodes()), None), dtypes, shapes
  )


def _read_long(reader, min_length, filename):
  """Read an episode and check its length.

  Raises:
    ValueError: If its arrays differ in length or are too short.
  """
  episode = reader(filename)
  lengths = {key: len(value) for key, value in episode.items()}
  if len(set(lengths.values())) > 1:
    raise ValueError(f'its arrays differ in length: {lengths}')
  if (length := min(lengths.values())) < min_length:
    raise ValueError(episode_files.too_short(length, min_length))
  return episode


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
  difference = episode_files.compare(_describe(example), _describe(episode))
  if difference:
    raise ValueError(difference)
  return episode


def _describe(episode):
  return {
    key: f'{list(value.shape[1:])} {value.dtype.name}'
    for key, value in episode.items()
  }
