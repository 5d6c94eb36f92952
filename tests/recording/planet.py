"""Numbers of PlaNet, by a clone of google-research/planet."""

import functools
import io
import json
import os
from typing import Any

import numpy as np
from PIL import Image

from scripts.comparison import planet_original
from tests.recording.data import DATA, Results, below, evaluate, read, session


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  return 'planet', record(planet_original.prepare(clone))


def record(tf: Any) -> Results:
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
  yield 'temporal_difference.npz', evaluate(tf, found)

  data = read('planet', 'mask')
  x, length = (tf.constant(data[f'in/{x}']) for x in ('x', 'length'))
  flags = tf.sequence_mask(length, x.shape[1])
  found = {
    'out/value7': tools.mask(x, length=length, value=7),
    'out/value0': tools.mask(x, flags),
  }
  yield 'mask.npz', evaluate(tf, found)

  data, found = read('planet', 'bound_action'), {}
  for name in ('none', 'clip', 'tanh'):
    action = tf.constant(data['in/action'])
    found[f'out/{name}/value'] = value = tools.bound_action(action, name)
    gradient = tf.gradients(value, action, tf.constant(data['in/grad_out']))
    found[f'out/{name}/grad'] = gradient[0]
  yield 'bound_action.npz', evaluate(tf, found)

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
  yield 'preprocess.npz', evaluate(tf, found)

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
  yield 'streaming_mean.npz', found

  path = os.path.join(DATA, 'planet', 'schedule.json')
  with open(path) as file_:
    table = json.load(file_)
  step = tf.placeholder(tf.int32, ())
  for name in ('binary', 'linear', 'linear_reset'):
    for row in table[name]:
      kwargs = {k: v for k, v in row.items() if k not in ('steps', 'result')}
      value = getattr(tools.schedule, name)(step, **kwargs)
      with session(tf) as sess:
        row['result'] = [
          sess.run(value, {step: x}).item() for x in row['steps']
        ]
  yield 'schedule.json', table

  data, found = read('planet', 'chunk_sequence'), {}
  sequence = {key: tf.constant(data[f'in/{key}']) for key in 'xy'}
  for name in ('plain', 'plain_num2'):
    settings = below(data, f'cfg/{name}/')
    chunks = tools.chunk_sequence.chunk_sequence(
      sequence, **{k: v.item() for k, v in settings.items()}
    )
    for key, value in chunks.items():
      found[f'out/{name}/{key}'] = value
  yield 'chunk_sequence.npz', evaluate(tf, found)

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
  yield 'feed_forward.npz', found

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
  yield 'image_strip.npz', found

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
  yield 'optimizer.npz', found
