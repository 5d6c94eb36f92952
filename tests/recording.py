"""Recorded numbers of `tests/data`, computed again by the originals.

Run it by `python -m scripts.compare PATH --record`.

The files hold inputs, weights and settings beside the results. A recorder
reads them and yields names of files with new results; keys that it does not
compute stay as they are.
"""

import functools
import io
import json
import os
import subprocess
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
from PIL import Image

from scripts import machine
from scripts.comparison.cases import Case

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')
_PROVENANCE = """# Where these numbers come from

Written by `python -m scripts.compare PATH --record`, where PATH is a clone of
{original}, with the inputs that the files hold.
Differences are relative to the largest number before.

- Original: {original}, {version}
- Versions: {versions}
- Processor: {processor}

| file | results | difference |
|---|---|---|
{rows}

Results that a file has beyond these are from the first recording, whose program
has not been kept. So are {others}.
"""
_ORIGINALS = {
  'planet': 'google-research/planet',
  'ppo': 'pybullet_envs.agents',
  'her': 'openai/baselines',
  'digideep': 'sharif1093/digideep',
}

Results = Iterator[tuple[str, dict[str, Any]]]


def read(folder: str, name: str) -> dict[str, Any]:
  """Return the arrays of a file of `tests/data`."""
  with np.load(os.path.join(DATA, folder, f'{name}.npz')) as data:
    return {key: data[key] for key in data}


def record(name: str, clone: str, out: str) -> None:
  """Write a folder of `tests/data` again, and a page about it beside it.

  Args:
    name: Name of the module of `scripts.comparison` for the original.
    clone: Its folder.
    out: Folder for what is needed meanwhile.
  """
  folder, results = _RECORDERS[name](clone, out)
  cases = [_write(folder, *x) for x in results]
  place = os.path.join(DATA, folder)
  page = _PROVENANCE.format(
    original=_ORIGINALS[name],
    version=_find_commit(clone),
    rows='\n'.join(
      f'| {x.name} | {x.numbers} | {x.difference:.0e} |' for x in cases
    ),
    others=', '.join(
      f'`{x}`'
      for x in sorted(os.listdir(place))
      if x not in [y.name for y in cases] and '.md' not in x
    )
    or 'no other files',
    **machine.describe(),
  )
  for parent in (place, out):
    with open(os.path.join(parent, 'PROVENANCE.md'), 'w') as file_:
      file_.write(page)


def _find_commit(clone):
  command = ['git', '-C', clone, 'rev-parse', '--show-toplevel', 'HEAD']
  found = subprocess.run(command, capture_output=True, text=True).stdout.split()
  if found[:1] == [os.path.realpath(clone)]:
    return f'commit {found[1]}'
  return f'PyBullet {metadata.version("pybullet")}'


def _write(folder, name, found):
  """Put results into a file; return how they differ from those before."""
  path = os.path.join(DATA, folder, name)
  if name.endswith('.json'):
    with open(path) as file_:
      before = json.load(file_)
    if found != before:
      with open(path, 'w') as file_:
        json.dump(found, file_, indent=1)
    return Case(name, len(found), 0.0 if found == before else np.inf, 0.0)
  before = read(folder, name.removesuffix('.npz'))
  found = {k: np.asarray(v, before[k].dtype) for k, v in found.items()}
  difference = max(_compare(before[k], v) for k, v in found.items())
  np.savez_compressed(path, **{**before, **found})
  return Case(f'{name}', len(found), difference, 0.0)


def _compare(before, now):
  """Return the largest difference relative to the largest number."""
  if before.shape != now.shape:
    return np.inf
  if before.dtype.kind not in 'fc' or np.array_equal(before, now, True):
    return 0.0 if np.array_equal(before, now, before.dtype.kind == 'f') else 1.0
  scale = max(np.nanmax(np.abs(before)), 1e-6)
  return float(np.abs(np.float64(before) - now).max() / scale)


def _sparse_reward(ag_2, g, info):
  """Return the rewards that recorded samples have."""
  far = np.linalg.norm(ag_2 - g, axis=-1) > 0.05
  return -far.astype(np.float32)


def _info_reward(ag_2, g, info):
  far = np.linalg.norm(ag_2 - g, axis=-1) > 0.5
  return -far.astype(np.float32) + 0.25 * info['is_success'][:, 0]


def record_her(tf: Any) -> Results:
  """Yield the results of samplers, replay, normalizers and Adam."""
  from baselines.common import mpi_adam
  from baselines.her import her_sampler, normalizer, replay_buffer

  data, found = read('her', 'her_sampler'), {}
  rewards = {'sparse': _sparse_reward, 'info': _info_reward}
  for case in (f'case{x}_' for x in range(data['n_cases'])):
    seed, replay_k, _, _, batch = (int(x) for x in data[f'{case}meta'])
    episodes = _below(data, f'{case}in_')
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
    episodes = _below(data, f'{case}in_')
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
  batch = util.convert_episode_to_batch_major(_below(data, 'in_'))
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


def record_ppo(tf: Any) -> Results:
  """Yield the results of returns, divergences and running statistics."""
  from pybullet_envs.agents import tools
  from pybullet_envs.agents.ppo import normalize, utility

  data = read('ppo', 'returns')
  reward, value, length = (
    tf.constant(data[x]) for x in ('reward', 'value', 'length')
  )
  discount, lambda_ = float(data['discount']), float(data['lambda_'])
  end = value, length, discount
  found = {
    'discounted_return': utility.discounted_return(reward, length, discount),
    'lambda_return': utility.lambda_return(reward, *end, lambda_),
    'lambda_return_lambda1': utility.lambda_return(reward, *end, 1.0),
    'lambda_advantage': utility.lambda_advantage(reward, *end),
  }
  yield 'returns.npz', _evaluate(tf, found)

  data = read('ppo', 'diag_normal')
  first, second = (
    (tf.constant(data[f'mean{x}']), tf.constant(data[f'logstd{x}']))
    for x in (0, 1)
  )
  flat = [x[:, 0] for x in first]
  found = {
    'kl_0_1': utility.diag_normal_kl(*first, *second),
    'kl_1_0': utility.diag_normal_kl(*second, *first),
    'kl_0_0': utility.diag_normal_kl(*first, *first),
    'logpdf': utility.diag_normal_logpdf(*first, tf.constant(data['loc'])),
    'entropy_rank3_original': utility.diag_normal_entropy(*first),
    'entropy_rank2': utility.diag_normal_entropy(*flat),
  }
  yield 'diag_normal.npz', _evaluate(tf, found)

  data, found = read('ppo', 'streaming_mean'), {}
  mean = tools.StreamingMean((), tf.float32)
  with _session(tf) as sess:
    for index in range(3):
      sess.run(mean.submit(tf.constant(data[f'in{index}'])))
      found[f'value{index}'], found[f'count{index}'] = sess.run(
        [mean.value, mean.count]
      )
    sess.run(mean.submit(tf.constant(data['in3'])))
    found['clear'] = sess.run(mean.clear())
    found['value_after_clear'], found['count_after_clear'] = sess.run(
      [mean.value, mean.count]
    )
  yield 'streaming_mean.npz', found

  data, found = read('ppo', 'streaming_normalize'), {}
  for name, settings in {
    'observ': (True, True, 5),
    'reward_like': (False, True, 10),
    'center_only': (True, False, None),
  }.items():
    before = len(tf.global_variables())
    probe = tf.constant(data['probe'])
    filter_ = normalize.StreamingNormalize(probe[0], *settings)
    state = dict(
      zip(('count', 'mean', 'var_sum'), tf.global_variables()[before:])
    )
    outputs = {
      'transform': filter_.transform(probe),
      'transform_single': filter_.transform(probe[0]),
    }
    with _session(tf) as sess:
      key = f'{name}/transform_before_any_update'
      found[key] = sess.run(outputs['transform'])
      updates = [x for x in data if x.startswith('update')]
      for index, key in enumerate(updates):
        sess.run(filter_.update(tf.constant(data[key])))
        for key, value in sess.run({**state, **outputs}).items():
          found[f'{name}/{key}{index}'] = value
  yield 'streaming_normalize.npz', found

  from pybullet_envs.agents import networks
  from pybullet_envs.agents.ppo import memory

  data = read('ppo', 'feed_forward_gaussian')
  names = 'policy_layers', 'value_layers'
  config = tools.AttrDict({k: data[k].tolist() for k in names})
  config = tools.AttrDict(config, init_mean_factor=0.1, init_logstd=-1.0)
  before = len(tf.global_variables())
  output = networks.feed_forward_gaussian(
    config,
    int(data['action_size']),
    tf.constant(data['observations']),
    tf.constant(data['length']),
  )
  weights = _below(data, 'weight_').values()
  # The distribution was one of tf.contrib, so not the original's.
  found = {
    'mean': output.mean,
    'logstd': output.logstd,
    'value': output.value,
  }
  with _session(tf) as sess:
    for variable, value in zip(tf.global_variables()[before:], weights):
      variable.load(value, sess)
    yield 'feed_forward_gaussian.npz', sess.run(found)

  data, found = read('ppo', 'episode_memory'), {}
  sizes = int(data['capacity']), int(data['max_length'])
  template = [tf.zeros(x) for x in ((2,), (3,), ())]
  episodes = memory.EpisodeMemory(template, *sizes, 'memory')
  steps = []
  for index, kind in enumerate(data['operations']):
    given = _below(data, f'step{index:02d}_')
    rows = tf.constant(given['rows'])
    values = [tf.constant(v) for k, v in given.items() if k.startswith('in')]
    steps.append(
      {
        'clear': lambda values, given, rows: episodes.clear(rows),
        'append': lambda values, given, rows: episodes.append(values, rows),
        'replace': lambda values, given, rows: episodes.replace(
          values, tf.constant(given['new_length']), rows
        ),
      }[str(kind)](values, given, rows)
    )
  rows = tf.constant(data['select_rows'])
  everything, some = episodes.data(), episodes.data(rows)
  with _session(tf) as sess:
    for index, step in enumerate(steps):
      sess.run(step)
      found.update(_name_episodes(f'step{index:02d}_', sess.run(everything)))
    found.update(_name_episodes('select_', sess.run(some)))
  yield 'episode_memory.npz', found


def record_planet(tf: Any) -> Results:
  """Yield the results of returns, masks, bounds of actions and images."""
  from planet import control, tools
  from planet.tools import preprocess

  data = read('planet', 'temporal_difference')
  reward, value, end = (
    tf.constant(data[f'in/{x}']) for x in ('reward', 'value', 'bootstrap')
  )
  found = {
    f'out/discounted_{discount}_{name}': control.discounted_return(
      reward, discount, bootstrap, 1
    )
    for discount in (0.9, 1)
    for name, bootstrap in (('bootstrap', end), ('none', None))
  }
  for factor, name, bootstrap in (
    (0.8, 'bootstrap', end),
    (0.8, 'none', None),
    (1, 'bootstrap', end),
    (0, 'bootstrap', end),
  ):
    found[f'out/lambda_{factor}_disc_0.9_{name}'] = control.lambda_return(
      reward, value, bootstrap, 0.9, float(factor), 1
    )
  for steps, name, values in ((2, 'value', value), (3, 'none', None)):
    found[f'out/fixed_steps_{steps}_disc_0.9_{name}'] = (
      control.fixed_step_return(reward, values, 0.9, steps, 1)
    )
  yield 'temporal_difference.npz', _evaluate(tf, found)

  data = read('planet', 'mask')
  x, length = (tf.constant(data[f'in/{x}']) for x in ('x', 'length'))
  flags = tf.sequence_mask(length, x.shape[1])
  found = {
    'out/value7': tools.mask(x, length=length, value=7),
    'out/value0': tools.mask(x, flags),
  }
  yield 'mask.npz', _evaluate(tf, found)

  data, found = read('planet', 'bound_action'), {}
  for name in ('none', 'clip', 'tanh'):
    action = tf.constant(data['in/action'])
    found[f'out/{name}/value'] = value = tools.bound_action(action, name)
    gradient = tf.gradients(value, action, tf.constant(data['in/grad_out']))
    found[f'out/{name}/grad'] = gradient[0]
  yield 'bound_action.npz', _evaluate(tf, found)

  data, found = read('planet', 'preprocess'), {}
  image = tf.constant(data['in/float_image'])
  for bits in (3, 5, 8):
    start = f'out/bits{bits}'
    noisy = tf.constant(data[f'{start}/preprocess_with_noise'])
    found[f'{start}/postprocess_float32'] = preprocess.postprocess(image, bits)
    for key, value in (('postprocess', image), ('roundtrip', noisy)):
      found[f'{start}/{key}_uint8'] = preprocess.postprocess(
        value, bits, tf.uint8
      )
  yield 'preprocess.npz', _evaluate(tf, found)

  data, found = read('planet', 'streaming_mean'), {}
  mean = tools.StreamingMean((2,), tf.float32, 'mean')
  state = {'value': mean.value, 'count': mean.count}
  with _session(tf) as sess:
    for index in range(4):
      sess.run(mean.submit(tf.constant(data[f'in/submit{index}'])))
      for key, value in sess.run(state).items():
        found[f'out/after{index}/{key}'] = value
    found['out/clear'] = sess.run(mean.clear())
    found['out/count_after_clear'] = sess.run(mean.count)
    found['out/clear_when_empty'] = sess.run(mean.clear())
  yield 'streaming_mean.npz', found

  path = os.path.join(DATA, 'planet', 'schedule.json')
  with open(path) as file_:
    table = json.load(file_)
  step = tf.placeholder(tf.int32, ())
  for name in ('binary', 'linear', 'linear_reset'):
    for row in table[name]:
      kwargs = {k: v for k, v in row.items() if k not in ('steps', 'result')}
      value = getattr(tools.schedule, name)(step, **kwargs)
      with _session(tf) as sess:
        row['result'] = [
          sess.run(value, {step: x}).item() for x in row['steps']
        ]
  yield 'schedule.json', table

  data, found = read('planet', 'chunk_sequence'), {}
  sequence = {key: tf.constant(data[f'in/{key}']) for key in 'xy'}
  for name in ('plain', 'plain_num2'):
    settings = _below(data, f'cfg/{name}/')
    chunks = tools.chunk_sequence.chunk_sequence(
      sequence, **{k: v.item() for k, v in settings.items()}
    )
    for key, value in chunks.items():
      found[f'out/{name}/{key}'] = value
  yield 'chunk_sequence.npz', _evaluate(tf, found)

  from planet import networks

  data, found = read('planet', 'feed_forward'), {}
  for name, meta in json.loads(str(data['meta'])).items():
    keys = 'data_shape', 'num_layers', 'units', 'std', 'dist'
    kwargs = {key: meta[key] for key in keys if key in meta}
    for key in ('activation', 'mean_activation'):
      if key in meta:
        kwargs[key] = getattr(tf.nn, meta[key])
    before = len(tf.global_variables())
    head = networks.feed_forward(tf.constant(data['in/state']), **kwargs)
    target = tf.constant(data[f'in/target/{name}'])
    results = {f'out/{name}/log_prob': head.log_prob(target)}
    for key in ('mean', 'mode', 'stddev'):
      if f'out/{name}/{key}' in data:
        results[f'out/{name}/{key}'] = getattr(head, key)()
    with _session(tf) as sess:
      weights = _below(data, f'w/{name}/').values()
      for variable, value in zip(tf.global_variables()[before:], weights):
        variable.load(value, sess)
      found.update(sess.run(results))
  yield 'feed_forward.npz', found

  data, found = read('planet', 'image_strip'), {}
  for key, tag, name, sizes in (
    ('float', 'x', 'float', {}),
    ('uint8', 'y', 'uint8_maxlen2_maxbatch1', dict(max_length=2, max_batch=1)),
  ):
    images = tf.constant(data[f'in/{key}'])
    strip = _evaluate(tf, tools.image_strip_summary(tag, images, **sizes))
    (value,) = tf.Summary.FromString(strip).value
    content = io.BytesIO(value.image.encoded_image_string)
    found[f'out/{name}/pixels'] = np.asarray(Image.open(content))
    found[f'out/{name}/tag'] = value.tag
  yield 'image_strip.npz', found

  data, found = read('planet', 'optimizer'), {}
  for name in ('clipped', 'unclipped'):
    inputs = _below(data, f'in/{name}/')
    with tf.variable_scope(f'{name}/graph'):
      a, b, other = (
        tf.get_variable(x, initializer=tf.constant(inputs[x[-1] + '0']))
        for x in ('main/a', 'main/b', 'other/b')
      )
    loss = tf.reduce_sum((a - inputs['target_a']) ** 2)
    loss += 2 * tf.reduce_sum(tf.abs(b - inputs['target_b']))
    loss += tf.reduce_sum(other)
    epsilon = float(data['cfg/adam_epsilon'])
    optimizer = tools.CustomOptimizer(
      functools.partial(tf.train.AdamOptimizer, epsilon=epsilon),
      tf.constant(0),
      tf.constant(True),
      float(data['cfg/learning_rate']),
      f'.*{name}/graph/main/.*',
      clipping=float(data[f'cfg/{name}/clipping']),
      name='main',
    )
    condition = tf.placeholder(tf.bool, ())
    update = optimizer.maybe_minimize(condition, loss)
    with _session(tf) as sess:
      norm = sess.run(update, {condition: False})[1]
      found[f'out/{name}/grad_norm_condition_false'] = norm
      rows = [
        (sess.run(update, {condition: True})[1], *sess.run([a, b]))
        for _ in data[f'out/{name}/grad_norms']
      ]
    for key, values in zip(('grad_norms', 'a', 'b'), zip(*rows)):
      found[f'out/{name}/{key}'] = np.stack(values)
  yield 'optimizer.npz', found


def _name_episodes(prefix, content):
  buffers, length = content
  values = {f'{prefix}buffer{i}': x for i, x in enumerate(buffers)}
  return {**values, f'{prefix}length': length}


def _below(data, prefix):
  return {
    k.removeprefix(prefix): v for k, v in data.items() if k.startswith(prefix)
  }


def _session(tf):
  sess = tf.Session()
  sess.run(tf.global_variables_initializer())
  return sess


def _evaluate(tf, tensors):
  with _session(tf) as sess:
    return sess.run(tensors)


def _prepare_her(clone, out):
  from scripts.comparison import her_original

  return 'her', record_her(her_original.prepare(clone))


def _prepare_ppo(clone, out):
  from scripts.comparison import ppo_original

  ppo_original.prepare(clone)
  import tensorflow.compat.v1 as tf

  return 'ppo', record_ppo(tf)


def _prepare_planet(clone, out):
  from scripts.comparison import planet_original

  return 'planet', record_planet(planet_original.prepare(clone))


def _prepare_digideep(clone, out):
  from scripts.comparison import digideep

  return digideep.FOLDER, digideep.record(clone, out)


_RECORDERS = {
  'her': _prepare_her,
  'ppo': _prepare_ppo,
  'planet': _prepare_planet,
  'digideep': _prepare_digideep,
}
