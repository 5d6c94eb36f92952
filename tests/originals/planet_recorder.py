"""Numbers of PlaNet, by a clone of google-research/planet.

The clone is the package `planet` here, so that graphs of the tests that are
built from its modules are those of the original.
"""

import contextlib
import functools
import io
import json
import os
import random
import re
import tempfile
import threading
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from tests import golden
from tests.originals import planet_original
from tests.originals.cases import recorded
from tests.originals.data import (
  Results,
  below,
  evaluate,
  read,
  read_json,
  session,
)

_MODELS = (
  'ssm',
  'rssm',
  'rssm_layers2_elu',
  'rssm_no_future_rnn',
  'drnn',
  'drnn_flags',
)


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  return 'planet', record(planet_original.prepare(clone))


def record(tf: Any) -> Results:
  """Yield names of files and their results, each from a graph of its own."""
  models = [functools.partial(_model, name=name) for name in _MODELS]
  for function in (
    _temporal_difference,
    _mask,
    _bound_action,
    _preprocess,
    _streaming_mean,
    _schedule,
    _chunk_sequence,
    _feed_forward,
    _image_strip,
    _optimizer,
    _nested,
    _episode_reader,
    _loaders,
    _trainer,
    _gru,
    _conv_ha,
    _divergence,
    *models,
    _overshooting,
    _objectives,
    _cem_toy,
    _cem_rssm,
    _simulate,
    _wrappers_npz,
    _wrappers_json,
  ):
    tf.reset_default_graph()
    yield function(tf)


def _temporal_difference(tf):
  from planet import control

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
  return 'temporal_difference.npz', evaluate(tf, found)


def _mask(tf):
  from planet import tools

  data = read('planet', 'mask')
  x, length = (tf.constant(data[f'in/{x}']) for x in ('x', 'length'))
  flags = tf.sequence_mask(length, x.shape[1])
  found = {
    'out/value7': tools.mask(x, length=length, value=7),
    'out/value0': tools.mask(x, flags),
  }
  return 'mask.npz', evaluate(tf, found)


def _bound_action(tf):
  from planet import tools

  data, found = read('planet', 'bound_action'), {}
  for name in ('none', 'clip', 'tanh'):
    action = tf.constant(data['in/action'])
    found[f'out/{name}/value'] = value = tools.bound_action(action, name)
    gradient = tf.gradients(value, action, tf.constant(data['in/grad_out']))
    found[f'out/{name}/grad'] = gradient[0]
  return 'bound_action.npz', evaluate(tf, found)


def _preprocess(tf):
  from planet.tools import preprocess

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
  return 'preprocess.npz', evaluate(tf, found)


def _streaming_mean(tf):
  from planet import tools

  data, found = read('planet', 'streaming_mean'), {}
  mean = tools.StreamingMean((2,), tf.float32, 'mean')
  state = {'value': mean.value, 'count': mean.count}
  with session(tf) as sess:
    for index in range(4):
      sess.run(mean.submit(tf.constant(data[f'in/submit{index}'])))
      for key, value in sess.run(state).items():
        found[f'out/after{index}/{key}'] = value
    found['out/clear'] = sess.run(mean.clear())
    found['out/count_after_clear'] = sess.run(mean.count)
    found['out/clear_when_empty'] = sess.run(mean.clear())
  return 'streaming_mean.npz', found


def _schedule(tf):
  from planet import tools

  table = read_json('planet', 'schedule')
  step = tf.placeholder(tf.int32, ())
  for name in ('binary', 'linear', 'linear_reset'):
    for row in table[name]:
      kwargs = {k: v for k, v in row.items() if k not in ('steps', 'result')}
      value = getattr(tools.schedule, name)(step, **kwargs)
      with session(tf) as sess:
        row['result'] = [
          sess.run(value, {step: x}).item() for x in row['steps']
        ]
  return 'schedule.json', table


def _chunk_sequence(tf):
  from planet import tools

  data, found = read('planet', 'chunk_sequence'), {}
  sequence = {key: tf.constant(data[f'in/{key}']) for key in 'xy'}
  for name in ('plain', 'plain_num2'):
    settings = below(data, f'cfg/{name}/')
    chunks = tools.chunk_sequence.chunk_sequence(
      sequence, **{k: v.item() for k, v in settings.items()}
    )
    for key, value in chunks.items():
      found[f'out/{name}/{key}'] = value
  return 'chunk_sequence.npz', evaluate(tf, found)


def _feed_forward(tf):
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
    with session(tf) as sess:
      weights = below(data, f'w/{name}/').values()
      for variable, value in zip(tf.global_variables()[before:], weights):
        variable.load(value, sess)
      found.update(sess.run(results))
  return 'feed_forward.npz', found


def _image_strip(tf):
  from planet import tools

  data, found = read('planet', 'image_strip'), {}
  for key, tag, name, sizes in (
    ('float', 'x', 'float', {}),
    ('uint8', 'y', 'uint8_maxlen2_maxbatch1', dict(max_length=2, max_batch=1)),
  ):
    images = tf.constant(data[f'in/{key}'])
    strip = evaluate(tf, tools.image_strip_summary(tag, images, **sizes))
    (value,) = tf.Summary.FromString(strip).value
    content = io.BytesIO(value.image.encoded_image_string)
    found[f'out/{name}/pixels'] = np.asarray(Image.open(content))
    found[f'out/{name}/tag'] = value.tag
  return 'image_strip.npz', found


def _optimizer(tf):
  from planet import tools

  data, found = read('planet', 'optimizer'), {}
  for name in ('clipped', 'unclipped'):
    inputs = below(data, f'in/{name}/')
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
    with session(tf) as sess:
      norm = sess.run(update, {condition: False})[1]
      found[f'out/{name}/grad_norm_condition_false'] = norm
      rows = [
        (sess.run(update, {condition: True})[1], *sess.run([a, b]))
        for _ in data[f'out/{name}/grad_norms']
      ]
    for key, values in zip(('grad_norms', 'a', 'b'), zip(*rows)):
      found[f'out/{name}/{key}'] = np.stack(values)
  return 'optimizer.npz', found


def _nested(tf):
  from planet import tools
  from tests.agents.tools import test_nested

  table = read_json('planet', 'nested')
  with mock.patch.object(test_nested, 'AttrDict', tools.AttrDict):
    for row in table['rows']:
      args = [test_nested.decode(x) for x in row['args']]
      if row['fn']:
        args = [test_nested.FUNCTIONS[row['fn']], *args]
      call = functools.partial(
        getattr(tools.nested, row['op']), *args, **row['kwargs']
      )
      if 'error' in row:
        row['error'] = _name_error(call)
      else:
        row['result'] = _encode(call())
  return 'nested.json', table


def _encode(value):
  """Return the description of a structure that the file holds."""
  if isinstance(value, dict):
    return {
      'class': type(value).__name__,
      'dict': {k: _encode(value[k]) for k in sorted(value)},
      'order': list(value),
    }
  if hasattr(value, '_fields'):
    return {'namedtuple': {k: _encode(v) for k, v in value._asdict().items()}}
  if isinstance(value, (tuple, list)):
    return {type(value).__name__: [_encode(x) for x in value]}
  return value


def _episode_reader(tf):
  from planet.tools import numpy_episodes

  data, found = golden.load('planet/episode_reader'), {}
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'episode.npz')
    np.savez_compressed(path, **data.below('in'))
    for name, limit in (('full', None), ('max_length3', 3)):
      episode = numpy_episodes.episode_reader(path, max_length=limit)
      found.update(_flatten(f'out/{name}', episode))
  return 'episode_reader.npz', found


def _loaders(tf):
  from planet.tools import numpy_episodes

  table = read_json('planet', 'loaders')
  for case in table['cases']:
    with tempfile.TemporaryDirectory() as folder:
      case.update(_load(tf, case, folder))
  for row in table['permuted']:
    np.random.seed(row['numpy_random_seed'])
    result = numpy_episodes._permuted(row['sequence'], row['amount'])
    row['result'] = [int(x) for x in result]
  table['permuted_empty'] = list(numpy_episodes._permuted([], 5))
  for row in table['sample']:
    random.seed(row['python_random_seed'])
    row['result'] = numpy_episodes._sample(row['sequence'], row['amount'])
  return 'loaders.json', table


def _load(tf, case, folder):
  """Return what a loader yields while files appear in a folder."""
  from planet.tools import numpy_episodes

  def add(name):
    open(os.path.join(folder, f'{name}.npz'), 'w').close()

  for name in case['initial_files']:
    add(name)
  random.seed(case['python_random_seed'])
  np.random.seed(case['numpy_random_seed'])
  scans, yields, find = [], [], tf.gfile.Glob
  stream = getattr(numpy_episodes, case['loader'])(
    lambda path: os.path.basename(path).removesuffix('.npz'),
    folder,
    4,
    **({} if case['every'] is None else {'every': case['every']}),
  )
  appear = dict(case['file_added_before_yield'])
  list_sorted = recorded(lambda pattern: sorted(find(pattern)), scans)
  with mock.patch.object(tf.gfile, 'Glob', list_sorted):
    for index in range(len(case['yields'])):
      if index in appear:
        add(appear[index])
      yields.append(str(next(stream)))
  return {'yields': yields, 'directory_scans': len(scans)}


def _trainer(tf):
  from planet import training

  table = read_json('planet', 'trainer')
  trainer = training.Trainer(None)
  for row in table['is_every_steps']:
    row[-1] = trainer._is_every_steps(*row[:3])
  for case in table['find_current_phase']:
    tf.reset_default_graph()
    trainer = training.Trainer(None)
    for name, steps in case['phases']:
      trainer.add_phase(name, steps, 0.0, '')
    for row in case['rows']:
      phase, *row[2:] = trainer._find_current_phase(row[0])
      row[1] = phase.name
  for run in table['runs']:
    tf.reset_default_graph()
    with tempfile.TemporaryDirectory() as folder:
      run.update(_train(tf, run['config'], folder))
  return 'trainer.json', table


def _train(tf, config, folder):
  """Return all that happens in a run whose score is the step plus one."""
  from planet import tools, training

  rows, written, checkpoints = [], [], []

  class Writer:
    def __init__(self, folder, *args, **kwargs):
      self._phase = os.path.basename(folder)

    def add_summary(self, summary, step):
      written.append([self._phase, int(step)])

  trainer = training.Trainer(folder, tools.AttrDict(checkpoint_to_load=None))
  score = tf.to_float(trainer.step) + 1
  summary = tf.cond(
    trainer.log, lambda: tf.summary.scalar('step', trainer.step), str
  )
  with mock.patch.object(tf.summary, 'FileWriter', Writer):
    for name in ('train', 'test'):
      trainer.add_phase(
        name,
        config[name]['steps'],
        score,
        summary,
        config['batch'],
        **{k: v for k, v in config[name].items() if k != 'steps'},
      )
  trainer.add_saver()
  sess = tf.Session()
  execute, store = sess.run, trainer._store_checkpoint

  def run(fetches, feed_dict=None, *args, **kwargs):
    result = execute(fetches, feed_dict, *args, **kwargs)
    if trainer.step in (feed_dict or {}):
      summary, score, step = result
      rows.append(
        {
          'global_step_after': int(step),
          'log': bool(feed_dict[trainer.log]),
          'mean_score': float(score),
          'phase': feed_dict[trainer.phase],
          'report': feed_dict[trainer._report],
          'reset': bool(feed_dict[trainer.reset]),
          'step': int(feed_dict[trainer.step]),
          'summary_nonempty': bool(summary),
        }
      )
    return result

  def store_checkpoint(sess, saver, step):
    store(sess, saver, step)
    checkpoints.append(int(step))

  with (
    mock.patch.object(sess, 'run', run),
    mock.patch.object(trainer, '_store_checkpoint', store_checkpoint),
  ):
    scores = [float(x) for x in trainer.iterate(config['max_step'], sess)]
  return {
    'rows': rows,
    'yielded_scores': scores,
    'checkpoints_at_global_step': checkpoints,
    'summaries_written': written,
  }


def _gru(tf):
  data = golden.load('planet/gru')
  x, before = (tf.constant(data[f'in/{x}']) for x in ('x', 'h_prev'))
  cell = tf.contrib.rnn.GRUBlockCell(before.shape[1].value)
  after, _ = cell(x, before)
  pairs = {x.op.name.split('/')[-1]: x for x in tf.trainable_variables()}
  sources = {**pairs, 'x': x, 'h_prev': before}
  grads = tf.gradients(
    after, list(sources.values()), tf.constant(data['in/grad_out'])
  )
  found = {f'grad/{k}': v for k, v in zip(sources, grads)}
  found['out/h'] = _fused_step(tf, x, before, pairs)
  return 'gru.npz', _run(tf, data, pairs, found)


def _fused_step(tf, x, before, weights):
  """Return the next state by the kernel that the cell of tf.contrib calls."""
  return tf.raw_ops.GRUBlockCell(x=x, h_prev=before, **weights).h


@contextlib.contextmanager
def _fused_cell(tf):
  """Let cells be computed by their kernel, which has no gradient any more."""

  class GRUBlockCell(tf.contrib.rnn.GRUBlockCell):
    def call(self, inputs, state):
      weights = {x.op.name.split('/')[-1]: x for x in self.weights}
      state = _fused_step(tf, inputs, state, weights)
      return state, state

  with mock.patch.object(tf.contrib.rnn, 'GRUBlockCell', GRUBlockCell):
    yield


def _conv_ha(tf):
  from planet.networks import conv_ha
  from tests import graphs

  data = golden.load('planet/conv_ha')
  image = data['in/image_uint8'] / data['cfg/image_divisor']
  image = tf.constant(image + data['cfg/image_offset'], tf.float32)
  encoder = tf.make_template('encoder', conv_ha.encoder)
  decoder = tf.make_template(
    'head_image', conv_ha.decoder, data_shape=[64, 64, 3]
  )
  dist = decoder(tf.constant(data['in/state']))
  found = {
    'out/encoder': encoder({'image': image}),
    'out/decoder_mean': dist.mean(),
    'out/decoder_log_prob': dist.log_prob(image),
  }
  pairs = graphs.pair_weights(graphs.IMAGE_ROLES)
  return 'conv_ha.npz', _run(tf, data, pairs, found)


def _divergence(tf):
  from planet import models

  data = golden.load('planet/divergence')
  states = [
    {k: tf.constant(v) for k, v in data.below(f'in/{x}').items()}
    for x in ('lhs', 'rhs')
  ]
  cell = models.SSM(states[0]['mean'].shape[-1].value, 4)
  divergence, mask = cell.divergence_from_states, tf.constant(data['in/mask'])
  found = {
    'out/divergence_no_mask': divergence(*states),
    'out/divergence_mask': divergence(*states, mask),
  }
  return 'divergence.npz', evaluate(tf, found)


def _model(tf, name):
  from tests import graphs
  from tests.planet.models import test_models

  data = golden.load(f'planet/{name}')
  with tf.variable_scope('graph'), _fused_cell(tf):
    outputs = test_models.define_outputs(data, graphs.make_cell(data.meta))
  pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
  return f'{name}.npz', _run(tf, data, pairs, _flatten('out', outputs))


def _overshooting(tf):
  from tests import graphs
  from tests.planet.tools import test_overshooting

  data, found = golden.load('planet/overshooting'), {}
  for name in (
    'fulllen_posterior_given',
    'varlen_posterior_given',
    'varlen_posterior_none',
  ):
    tf.reset_default_graph()
    with _fused_cell(tf):
      *parts, mask = test_overshooting.define(name)
    outputs = dict(zip(('target', 'prior', 'posterior'), parts), mask=mask)
    pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
    outputs = _flatten(f'out/{name}', outputs)
    found.update(_run(tf, data, pairs, outputs))
  return 'overshooting.npz', found


def _objectives(tf):
  from tests.planet.training import test_objectives

  data = golden.load('planet/objectives')
  found = _update(tf, data, test_objectives.define_config())
  for name in ('free_nats_none', 'overshoot'):
    params = test_objectives.VARIANTS[name]
    tf.reset_default_graph()
    config = test_objectives.define_config(**params)
    losses, _ = _losses(tf, config)
    pairs = test_objectives.pair_weights()
    found.update(_run(tf, data, pairs, _flatten(f'out/{name}', losses)))
  return 'objectives.npz', found


def _losses(tf, config):
  """Return tensors of the losses of a configuration, and the objectives."""
  from planet import tools
  from tests.planet.training import test_objectives

  calls, predict = [], tools.overshooting

  def overshooting(cell, *args):
    calls.append((cell, *predict(cell, *args)))
    return calls[-1][1:]

  with (
    tf.variable_scope('graph'),
    mock.patch.object(tools, 'overshooting', overshooting),
  ):
    objectives, steps = test_objectives.define_graph(config)
  losses = {
    'objective': {x.name: x.value for x in objectives},
    'total_loss': test_objectives.weighted_sum(objectives, config),
    'per_step': steps,
  }
  # The original takes no account of what is padding, hence NaN.
  for cell, _, prior, posterior, mask in calls:
    prior, posterior, mask = tools.nested.map(
      lambda x: x[:, :, 1:-1], (prior, posterior, mask)
    )
    value = cell.divergence_from_states(posterior, prior, mask)
    free = tf.maximum(0.0, value - config.free_nats)
    losses['masked_value_no_free_nats'] = tf.reduce_mean(value)
    losses['masked_value_free_nats_3'] = tf.reduce_mean(free)
  if config.free_nats is None or calls:
    del losses['per_step']
  return losses, objectives


def _update(tf, data, config):
  """Return losses, gradients and weights after an update."""
  from planet.training import utility
  from tests import graphs
  from tests.planet.training import test_objectives

  losses, objectives = _losses(tf, config)
  pairs = test_objectives.pair_weights()
  grads = tf.gradients(losses['total_loss'], list(pairs.values()))
  with tf.variable_scope('graph'):
    update = utility.apply_optimizers(
      objectives, test_objectives.make_trainer(), config
    )
  with session(tf) as sess:
    graphs.load_weights(sess, data, pairs)
    found, grads = sess.run([_flatten('out/default', losses), grads])
    found['out/default/grad_norm_main'] = sess.run(update)[1]['main']
    after = sess.run(pairs)
  names = [x.name for x in objectives]
  found['out/default/objective_order'] = np.array(names)
  for name, grad in zip(pairs, grads):
    change = np.float64(after[name]) - data.weight(name)
    found[f'grad_norm/{name}'] = np.linalg.norm(np.float64(grad))
    found[f'after_step_delta_norm/{name}'] = np.linalg.norm(change)
    if f'grad/{name}' in data:
      found[f'grad/{name}'] = grad
      found[f'after_step/{name}'] = after[name]
  return found


def _cem_toy(tf):
  from tests.planet.control import toy

  data = golden.load('planet/cem_toy')
  noise, topk = data['in/noise'], int(data['cfg/topk'])

  def plan(envs, iterations):
    return _plan(
      tf,
      noise[:iterations, envs],
      topk,
      toy.make_cell(),
      toy.objective,
      toy.make_state(envs),
      (3,),
    )

  (_, one), (_, two), (both, _), (none, _) = (
    plan([0], 4),
    plan([1], 4),
    plan([0, 1], 4),
    plan([0], 0),
  )
  found = {
    f'out/{name}_per_iteration': tf.concat(values, 1)
    for name, values in zip(('mean', 'stddev'), zip(one, two))
  }
  found['out/original_batched_mean_WRONG_TILING'] = both
  found['out/iterations_0'] = none
  return 'cem_toy.npz', evaluate(tf, found)


def _cem_rssm(tf):
  from planet.scripts import objectives
  from tests import graphs
  from tests.planet.control import test_planning

  data = golden.load('planet/cem_rssm')
  graph = test_planning.define_model(data.meta)
  _, scan = _plan(
    tf,
    data['in/noise'],
    int(data['cfg/topk']),
    graph.cell,
    functools.partial(objectives.reward, graph=graph, params=None),
    graphs.constants(data.below('in/state')),
    (int(data['cfg/embed_size']),),
  )
  found = {
    f'out/{name}_per_iteration': value[:, 0]
    for name, value in zip(('mean', 'stddev'), scan)
  }
  roles = graphs.cell_roles(data.meta)
  roles['head_reward'] = ['reward_hidden0', 'reward_hidden1', 'reward_mean']
  pairs = graphs.pair_weights(roles)
  return 'cem_rssm.npz', _run(tf, data, pairs, found)


def _plan(tf, noise, topk, cell, objective, state, obs_shape):
  """Plan from noise [iterations, envs, candidates, horizon, actions].

  Returns:
    Tuple of the plan, and means and deviations of all iterations.
  """
  from planet.control import planning

  indices, scans, scan = [], [], tf.scan

  def watched(function, elems, *args, **kwargs):
    def body(past, index):
      indices.append(index)
      return function(past, index)

    return scan(body, elems, *args, **kwargs)

  def draw(shape):
    return tf.reshape(tf.gather(noise, indices[-1]), shape)

  iterations, _, amount, horizon, size = noise.shape
  with (
    mock.patch.object(tf, 'scan', recorded(watched, scans)),
    mock.patch.object(tf, 'random_normal', draw),
  ):
    plan = planning.cross_entropy_method(
      cell,
      objective,
      state,
      obs_shape,
      (size,),
      horizon,
      None,
      amount=amount,
      topk=topk,
      iterations=iterations,
    )
  return plan, scans[0] if scans else None


def _simulate(tf):
  from tests.planet.control import test_simulate

  data, found = golden.load('planet/simulate'), {}
  for name in (
    'one_env',
    'two_envs_same_length',
    'two_envs_different_length',
    'not_finished',
  ):
    with _gym_spaces():
      values = test_simulate.rollout(data[f'cfg/{name}/lengths'])
    found.update(_flatten(f'out/{name}', values))
  return 'simulate.npz', found


def _wrappers_npz(tf):
  with _gym_spaces():
    found = {
      **_repeat(),
      **_normalize(),
      **_durations(),
      **_pad(),
      **_pixels(),
      **_concat(),
      **_collect(),
      **_batch(),
    }
  return 'wrappers.npz', _flatten('out', found)


def _repeat():
  from planet.control import wrappers
  from tests.planet.control.recorded import make, play

  found = {}
  for amount in (1, 2, 3):
    env = make()
    observs, rewards, dones = play(wrappers.ActionRepeat(env, amount))
    found[f'action_repeat_{amount}'] = {
      'state': np.stack([x['state'] for x in observs]),
      'reward': rewards,
      'done': dones,
      'inner_actions': np.stack(env.actions),
    }
  return found


def _normalize():
  from planet.control import wrappers
  from tests.planet.control.recorded import make, play

  inner = make()
  env = wrappers.NormalizeActions(inner)
  play(env)
  return {
    'normalize_actions': {
      'low': env.action_space.low,
      'high': env.action_space.high,
      'inner_actions': np.stack(inner.actions),
    }
  }


def _durations():
  from planet.control import wrappers
  from tests.planet.control.recorded import make, play

  found = {}
  for name, limit in (('1', 1), ('3', 3), ('longer', 11)):
    _, _, dones = play(wrappers.MaximumDuration(make(), limit))
    found[f'maximum_duration_{name}'] = {'done': dones}
  length = golden.load_json('planet/wrappers')['minimum_duration_inner_length']
  for limit in (2, 5, 12):
    _, _, dones = play(wrappers.MinimumDuration(make(length=length), limit))
    found[f'minimum_duration_{limit}'] = {'done': dones}
  return found


def _pad():
  from agents.envs import spaces
  from planet.control import wrappers
  from tests.planet.control.recorded import make

  data, boxes = golden.load('planet/wrappers'), []
  for low, high in zip(data['in/pad/lows'], data['in/pad/highs']):
    valid = ~np.isnan(low)
    boxes.append(spaces.box(low[valid], high[valid]))
  inner = make(low=boxes[0].low, high=boxes[0].high)
  env = wrappers.PadActions(inner, boxes)
  env.reset()
  env.step(np.arange(4, dtype=np.float32))
  return {
    'pad': {
      'low': env.action_space.low,
      'high': env.action_space.high,
      'inner_action': inner.actions[0],
    }
  }


_PIXELS = {
  'same': np.uint8,
  'down': np.uint8,
  'up': np.uint8,
  'float_source': np.float32,
  'float_source_down': np.float64,
}


def _make_pixels(name):
  from planet.control import wrappers
  from tests.planet.control.recorded import make

  data = golden.load('planet/wrappers')
  size = tuple(data[f'cfg/pixels_{name}/size'].tolist())
  return wrappers.PixelObservations(make(image_dtype=_PIXELS[name]), size)


def _pixels():
  from tests.planet.control.recorded import play

  found, actions = {}, golden.load('planet/wrappers')['in/actions'][:2]
  for name in _PIXELS:
    observs, _, _ = play(_make_pixels(name), actions)
    images = np.stack([x['image'] for x in observs])
    found[f'pixels_{name}'] = {'image': images}
  return found


def _concat():
  from planet.control import wrappers
  from tests.planet.control import test_wrappers
  from tests.planet.control.recorded import play

  env = wrappers.ConcatObservation(test_wrappers.make_three_keys(), ['b', 'a'])
  actions = golden.load('planet/wrappers')['in/actions'][:2]
  return {
    'concat': {
      'obs': np.stack(play(env, actions)[0]),
      'low': env.observation_space.low,
      'high': env.observation_space.high,
    }
  }


def _collect():
  from planet.control import wrappers
  from tests.planet.control.recorded import make, play

  env = wrappers.ConvertTo32Bit(wrappers.PixelObservations(make(), (6, 8)))
  with tempfile.TemporaryDirectory() as folder:
    play(wrappers.CollectGymDataset(env, folder))
    (name,) = os.listdir(folder)
    with np.load(os.path.join(folder, name)) as episode:
      return {'collect': dict(episode)}


def _batch():
  """Return four steps, and a reset of the first environment before the last."""
  from planet import control
  from tests.agents.envs import test_batch_env

  env = control.BatchEnv(test_batch_env.recorded_envs(), True)
  actions = np.tile(np.float32([-2, 0, -1]), (2, 1))
  rows, observs = [], [env.reset()]
  for step in range(4):
    observ, *row, _ = env.step(actions)
    observs.append(observ)
    rows.append(row)
    if step == 2:
      partial = env.reset(np.array([0]))
  reward, done = (np.stack(x) for x in zip(*rows))
  return {
    'batch_env': {
      'partial_reset': partial,
      'obs': np.stack(observs),
      'reward': reward,
      'done': done,
    }
  }


def _wrappers_json(tf):
  table = read_json('planet', 'wrappers')
  with _gym_spaces():
    table.update(_asynchronous())
    table.update(_spaces_and_types())
    table.update(_observations())
    table['errors'].update({k: _name_error(v) for k, v in _mistakes().items()})
  return 'wrappers.json', table


def _asynchronous():
  from planet.control import wrappers
  from tests import scripted_envs

  found = {}
  for strategy in ('process', 'thread'):
    env = wrappers.Async(scripted_envs.VectorEnv, strategy)
    reset = env.reset().tolist()
    result = env.step(np.float32([0.5]))
    found[f'async_{strategy}'] = {
      'magic': env.magic,
      'reset': reset,
      'space': str(env.observation_space.shape),
      'step_len': len(result),
      'step_obs': result[0].tolist(),
    }
    env.close()
  return found


def _spaces_and_types():
  """Return spaces of images, types of numbers, and names of files."""
  from planet import control
  from planet.control import wrappers
  from tests.agents.envs import test_batch_env
  from tests.planet.control.recorded import make, play

  found, table = {}, read_json('planet', 'wrappers')
  action = golden.load('planet/wrappers')['in/actions'][0]
  for name in _PIXELS:
    space = _make_pixels(name).observation_space
    image = space['image']
    found[f'pixels_{name}_space'] = [
      str(image.shape),
      str(image.dtype),
      float(image.high.max()),
      sorted(space.spaces),
    ]
  found['convert_dtypes'] = {}
  for dtype in table['convert_dtypes']:
    observe = lambda t, dtype=dtype: {'state': np.array([t, 2], dtype)}
    env = wrappers.ConvertTo32Bit(make(observe=observe))
    observ = env.reset()['state']
    _, reward, _, _ = env.step(action)
    found['convert_dtypes'][dtype] = {
      'obs': str(observ.dtype),
      'reward': str(reward.dtype),
      'reward_type': type(reward).__name__,
    }
  env = control.BatchEnv(test_batch_env.recorded_envs(), True)
  env.reset()
  observ, reward, done, info = env.step(np.stack([np.float32([0, 0, 0])] * 2))
  found['batch_env_dtypes'] = {
    'done': str(done.dtype),
    'info': type(info).__name__,
    'len': len(env),
    'obs': str(observ.dtype),
    'reward': str(reward.dtype),
  }
  with tempfile.TemporaryDirectory() as folder:
    play(wrappers.CollectGymDataset(make(), folder))
    (name,) = os.listdir(folder)
  match = re.match(table['collect_filename_regex'], name)
  found['collect_filename_regex_ok'] = bool(match)
  written: list = []
  write = recorded(lambda *args: args, written)
  with mock.patch.object(wrappers.CollectGymDataset, '_write', write):
    play(wrappers.CollectGymDataset(make(), None))
  found['collect_no_outdir_writes_nothing'] = not written
  return found


def _observations():
  """Return what wrappers make of observations."""
  from planet.control import wrappers
  from tests import scripted_envs
  from tests.planet.control.recorded import make
  from tests.planet.control.test_wrappers import make_list, make_three_keys

  env = wrappers.ConvertTo32Bit(make())
  found = {'forward': wrappers.ActionRepeat(env, 2).magic}
  env = wrappers.SelectObservations(make_three_keys(), ['c', 'a'])
  found['select_keys'] = list(env.reset())
  found['select_space'] = sorted(env.observation_space.spaces)
  env = wrappers.ObservationDict(make_list(), 'k')
  observ = env.reset()
  found['observation_dict'] = {
    'keys': list(observ),
    'space': list(env.observation_space.spaces),
    'type': type(observ['k']).__name__,
  }
  observe = lambda t: {'image': np.full((2, 2, 3), t), 'x': 1}
  env = wrappers.ObservationToRender(make(observe=observe))
  found['observation_to_render'] = {
    'keys': list(env.reset()),
    'space': list(env.observation_space.spaces),
    'render_is_image': env.render().shape == (2, 2, 3),
  }
  env.step(np.float32([0, 0, 0]))
  found['observation_to_render']['render_after_step'] = int(env.render().max())
  inner = make()
  inner.reset()
  env = wrappers.OverwriteRender(inner, lambda env, *args: env.t + 100)
  found['overwrite_render'] = env.render('rgb_array')
  double = lambda observ: np.asarray(observ, np.float32) * 2
  env = wrappers.ProcessObservation(make_list(), double)
  found['process_observation'] = env.reset().tolist()
  space = env.observation_space
  found['process_observation_space'] = [
    float(x[0]) for x in (space.low, space.high)
  ]
  env = wrappers.DeepMindWrapper(scripted_envs.FakeSuiteEnv(), (64, 48))
  observ = sorted(env.reset())
  *_, info = env.step([0.0])
  found['deepmind'] = {
    'action_low': env.action_space.low.tolist(),
    'dtype': str(env.action_space.dtype),
    'info': sorted(info),
    'metadata': env.metadata,
    'obs': observ,
    'reward_range': [str(x) for x in env.reward_range],
    'space': sorted(env.observation_space.spaces),
  }
  return found


def _mistakes():
  """Return calls that fail, by their names in the file."""
  from planet import control
  from planet.control import wrappers
  from tests import scripted_envs
  from tests.planet.control.recorded import make, play
  from tests.planet.control.test_wrappers import make_three_keys

  vector, none = scripted_envs.VectorEnv, np.array([None, 0])
  action = golden.load('planet/wrappers')['in/actions'][0]
  scripted = scripted_envs.ScriptedEnv

  def limited():
    env = wrappers.MaximumDuration(make(), 2)
    play(env)
    env.step(action)

  def infinite():
    env = wrappers.ConvertTo32Bit(make(rewards=[np.inf]))
    env.reset()
    env.step(action)

  def asynchronous(constructor, strategy, again=False):
    env = wrappers.Async(constructor, strategy)
    try:
      if again:
        _name_error(env.reset)
        env._process.join()
      env.reset()
      env.step(action)
    finally:
      env.close()

  crash = functools.partial(vector, crash_at=1)
  nan = lambda t: {'state': np.array([np.nan, 1])}
  suite = wrappers.DeepMindWrapper(scripted_envs.FakeSuiteEnv())
  pad = wrappers.PadActions(make(), [make().action_space])
  pixels = wrappers.PixelObservations
  calls = {
    'BatchEnv different action spaces': lambda: control.BatchEnv(
      [vector(), vector(low=[-2])], True
    ),
    'BatchEnv different observation spaces': lambda: control.BatchEnv(
      [vector(), scripted()], True
    ),
    'BatchEnv invalid action': lambda: control.BatchEnv([vector()], True).step(
      np.float32([[99]])
    ),
    'CollectGymDataset object array at episode end': lambda: play(
      wrappers.CollectGymDataset(make(observe=lambda t: {'state': none}), None)
    ),
    'ConcatObservation mixed dtypes': lambda: (
      wrappers.ConcatObservation(
        make_three_keys(), ['a', 'c']
      ).observation_space
    ),
    'ConvertTo32Bit inf reward': infinite,
    'ConvertTo32Bit nan observation': lambda: wrappers.ConvertTo32Bit(
      make(observe=nan)
    ).reset(),
    'DeepMindWrapper.render other mode': lambda: suite.render(mode='human'),
    'MaximumDuration.step after the limit': limited,
    'MaximumDuration.step before reset': lambda: wrappers.MaximumDuration(
      make(), 2
    ).step(action),
    'MinimumDuration.step before reset': lambda: wrappers.MinimumDuration(
      make(), 2
    ).step(action),
    'PadActions forwards other attributes': lambda: pad.magic,
    'PixelObservations int source': lambda: pixels(
      make(image_dtype=np.int32), (6, 8)
    ).reset(),
    'PixelObservations key already present': lambda: (
      pixels(make(), (6, 8), np.uint8, 'state').observation_space
    ),
    'PixelObservations on non-dict space': lambda: pixels(vector()),
    'forwarding of unknown attribute': lambda: (
      wrappers.ActionRepeat(make(), 2).missing
    ),
    'random_episodes without outdir': lambda: control.random_episodes(
      scripted, 1
    ),
    'Async unknown strategy': lambda: wrappers.Async(vector, 'other'),
  }
  for x in ('process', 'thread'):
    for name, *args in (
      ('broken constructor, first use', scripted_envs.fail_to_construct, x),
      ('step error', crash, x),
      ('second use after error', scripted_envs.fail_to_construct, x, True),
    ):
      call = functools.partial(asynchronous, *args)
      calls[f'Async {x} {name}'] = call
  return calls


@contextlib.contextmanager
def _gym_spaces():
  """Let environments of the tests have spaces of gym, like the original."""
  import gym

  from agents.envs import spaces

  with mock.patch.object(spaces, 'gymnasium', gym):
    yield


def _name_error(function):
  """Return the type of the error that a call raises, None if there is none."""
  errors = []

  def call():
    try:
      function()
      errors.append(None)
    except Exception as error:
      errors.append(type(error).__name__)

  thread = threading.Thread(target=call, daemon=True)
  thread.start()
  thread.join(3)
  return errors[0] if errors else 'HANG (blocks for ever)'


def _flatten(start, values):
  """Return values of nested dicts by their keys in a file."""
  found = {}
  for key, value in values.items():
    if isinstance(value, dict):
      found.update(_flatten(f'{start}/{key}', value))
    else:
      found[f'{start}/{key}'] = value
  return found


def _run(tf, data, pairs, tensors):
  """Return values with the weights of a file."""
  from tests import graphs

  with session(tf) as sess:
    graphs.load_weights(sess, data, pairs)
    return sess.run(tensors)
