"""Numbers of HER, by a clone of openai/baselines."""

from typing import Any

import numpy as np

from scripts.comparison import her_original
from tests.recording.data import Results, below, read


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  return 'her', record(her_original.prepare(clone))


def _sparse_reward(ag_2, g, info):
  """Return the rewards that recorded samples have."""
  far = np.linalg.norm(ag_2 - g, axis=-1) > 0.05
  return -far.astype(np.float32)


def _info_reward(ag_2, g, info):
  far = np.linalg.norm(ag_2 - g, axis=-1) > 0.5
  return -far.astype(np.float32) + 0.25 * info['is_success'][:, 0]


def record(tf: Any) -> Results:
  """Yield the results of samplers, replay, normalizers and Adam."""
  from baselines.common import mpi_adam
  from baselines.her import her_sampler, normalizer, replay_buffer

  data, found = read('her', 'her_sampler'), {}
  rewards = {'sparse': _sparse_reward, 'info': _info_reward}
  for case in (f'case{x}_' for x in range(data['n_cases'])):
    seed, replay_k, _, _, batch = (int(x) for x in data[f'{case}meta'])
    episodes = below(data, f'{case}in_')
    for key in ('o', 'ag'):
      episodes[f'{key}_2'] = episodes[key][:, 1:]
    sample = her_sampler.make_sample_her_transitions(
      str(data[f'{case}strategy']),
      replay_k,
      rewards[str(data[f'{case}reward'])],
    )
    np.random.seed(seed)
    for key, value in sample(episodes, batch).items():
      found[f'{case}out_{key}'] = value
    found[f'{case}next_uniform'] = np.random.uniform(size=4)
  yield 'her_sampler.npz', found

  data, found = read('her', 'replay_buffer'), {}
  sample = her_sampler.make_sample_her_transitions('future', 4, _sparse_reward)
  for case in (f'case{x}_' for x in range(data['n_cases'])):
    size, horizon, seed, _ = (int(x) for x in data[f'{case}meta'])
    episodes = below(data, f'{case}in_')
    shapes = {k: v.shape[1:] for k, v in episodes.items()}
    buffer = replay_buffer.ReplayBuffer(shapes, size, horizon, sample)
    for array in buffer.buffers.values():
      array[...] = -99
    np.random.seed(seed)
    start, counts = 0, []
    for count in data[f'{case}incs']:
      part = {k: v[start : start + count] for k, v in episodes.items()}
      buffer.store_episode(part)
      start += count
      counts.append((buffer.current_size, buffer.n_transitions_stored))
    for key, value in buffer.sample(12).items():
      found[f'{case}sample_{key}'] = value
    for key in episodes:
      found[f'{case}buf_{key}'] = buffer.buffers[key]
    names = 'current_size_episodes', 'n_transitions_stored'
    for key, values in zip(names, zip(*counts)):
      found[f'{case}{key}'] = values
  yield 'replay_buffer.npz', found

  data, found = read('her', 'normalizer'), {}
  sess = tf.InteractiveSession()
  for case in ('case0_', 'case1_'):
    size, eps, clip = data[f'{case}meta']
    with tf.variable_scope(case):
      stats = normalizer.Normalizer(
        int(size), float(eps), float(clip), sess=sess
      )
    sess.run(tf.global_variables_initializer())
    probe = tf.constant(data[f'{case}probe'], tf.float32)
    found[f'{case}normalized_before'] = sess.run(stats.normalize(probe))
    for index in range(data[f'{case}n_updates']):
      stats.update(data[f'{case}update{index}'])
      if data[f'{case}recomputed{index}']:
        stats.recompute_stats()
      for key, part in (
        ('sum', 'sum_tf'),
        ('sumsq', 'sumsq_tf'),
        ('count', 'count_tf'),
        ('mean', 'mean'),
        ('std', 'std'),
      ):
        found[f'{case}{key}{index}'] = sess.run(getattr(stats, part))
    found[f'{case}normalized'] = sess.run(stats.normalize(probe))
    found[f'{case}normalized_clip1'] = sess.run(stats.normalize(probe, 1))
    found[f'{case}denormalized'] = sess.run(stats.denormalize(probe))
  yield 'normalizer.npz', found

  data, found = read('her', 'mpi_adam'), {}
  for scale in (0, 1):
    start = data[f'theta_scale{scale}'][0]
    a, b = (tf.Variable(x) for x in (start[:3], start[3:].reshape(2, 5)))
    loss = tf.reduce_sum(tf.square(a)) + tf.reduce_sum(tf.sin(b))
    flat = tf.concat(
      [tf.reshape(x, [-1]) for x in tf.gradients(loss, [a, b])], 0
    )
    sess.run(tf.global_variables_initializer())
    adam = mpi_adam.MpiAdam([a, b], scale_grad_by_procs=bool(scale))
    rows = [adam.getflat()], [], []
    for _ in range(len(data[f'loss_scale{scale}'])):
      value, gradient = sess.run([loss, flat])
      adam.update(gradient, float(data['lr']))
      for kept, new in zip(rows, (adam.getflat(), value, gradient)):
        kept.append(new)
    for key, values in zip(('theta', 'loss', 'grad'), rows):
      found[f'{key}_scale{scale}'] = values
    for key in ('m', 'v'):
      found[f'{key}_scale{scale}'] = getattr(adam, key)
  yield 'mpi_adam.npz', found

  from baselines.common import mpi_moments
  from baselines.her import util

  data = read('her', 'util')
  batch = util.convert_episode_to_batch_major(below(data, 'in_'))
  found = {f'out_{key}': value for key, value in batch.items()}
  count = util.transitions_in_episode_batch(batch)
  found['transitions_in_episode_batch'] = count
  gradients = [tf.constant(data[f'grad{index}']) for index in range(3)]
  found['flat_grads'] = sess.run(util.flatten_grads(gradients, gradients))
  for index in range(3):
    case = f'mom{index}_'
    moments = mpi_moments.mpi_moments(data[f'{case}x'], data[f'{case}axis'])
    for key, value in zip(('mean', 'std', 'count'), moments):
      found[case + key] = value
  yield 'util.npz', found
