"""Graphs of the tests: sessions, recorded weights, recorded draws."""

import contextlib

from agents.tools.tf1 import tf
from planet import models

# Layers of the image networks, by scope and in the order of creation.
IMAGE_ROLES = {
  'encoder': [f'enc_conv{x}' for x in range(1, 5)],
  'head_image': ['dec_dense'] + [f'dec_deconv{x}' for x in range(1, 5)],
}


@contextlib.contextmanager
def session(threads=2):
  """Session on some threads of its own, with all variables initialized."""
  config = tf.ConfigProto(
    intra_op_parallelism_threads=threads,
    inter_op_parallelism_threads=threads,
    use_per_session_threads=True,
  )
  with tf.Session(config=config) as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    yield sess


def evaluate(fetches, feed=None):
  """Values of tensors in a fresh session."""
  with session() as sess:
    return sess.run(fetches, feed)


def constants(arrays):
  """Dict of tensors from a dict of arrays."""
  return {key: tf.constant(value) for key, value in arrays.items()}


def make_cell(meta):
  """Latent model from the recorded arguments of its constructor."""
  names = {
    'RSSM': 'belief_size embed_size future_rnn num_layers',
    'SSM': 'embed_size',
    'DRNN': (
      'belief_size embed_size encoder_to_decoder sample_to_sample '
      'sample_to_encoder decoder_to_encoder decoder_to_sample '
      'action_to_decoder'
    ),
  }[meta['model']].split()
  names += ['state_size', 'mean_only', 'min_stddev']
  kwargs = {name: meta[name] for name in names if name in meta}
  function = getattr(tf.nn, meta['activation'].split()[0])
  return getattr(models, meta['model'])(activation=function, **kwargs)


def cell_roles(meta):
  """Layers of a latent model, by scope and in the order of creation."""
  if meta['model'] == 'DRNN':
    roles = ['encoder_gru', 'hidden', 'mean', 'std', 'decoder_gru']
    return {'posterior': roles}
  if meta['model'] == 'SSM':
    return {
      'transition': ['trans_hidden', 'trans_mean', 'trans_std'],
      'posterior': ['post_hidden', 'post_mean', 'post_std'],
    }
  count = range(meta['num_layers'])
  return {
    'transition': [f'trans_pre{x}' for x in count]
    + ['trans_gru']
    + [f'trans_post{x}' for x in count]
    + ['trans_mean', 'trans_std'],
    'posterior': [f'post_hidden{x}' for x in count] + ['post_mean', 'post_std'],
  }


def pair_weights(roles):
  """Trainable variables by the names of their recorded weights.

  Args:
    roles: Dict from scope to the layers within it, in order of creation.

  Returns:
    Dict from `<role>/<kind>` to variable, of all variables of the graph.
  """
  pairs = {}
  for scope, names in roles.items():
    layers = {}
    for variable in tf.trainable_variables():
      layer, kind = variable.op.name.rsplit('/', 1)
      if f'/{scope}/' in f'/{layer}/':
        layers.setdefault(layer, {})[kind] = variable
    assert len(layers) == len(names), (sorted(layers), names)
    for role, layer in zip(names, layers.values()):
      pairs.update({f'{role}/{kind}': x for kind, x in layer.items()})
  assert len(pairs) == len(tf.trainable_variables()), sorted(pairs)
  return pairs


def load_weights(sess, data, pairs, prefix=''):
  """Write recorded weights to the variables of `pair_weights`."""
  for name, variable in pairs.items():
    value = data.weight(prefix + name)
    assert variable.shape.as_list() == list(value.shape), (name, variable)
    variable.load(value, sess)


@contextlib.contextmanager
def recorded_noise(monkeypatch, noise):
  """Let loops that are built within use recorded normal draws.

  The draw is chosen by the counter of the loop. A Python function that
  counts its calls would not do, as loops may run several iterations ahead.

  Args:
    monkeypatch: Fixture of pytest.
    noise: Array of one draw per iteration [iterations, ...].

  Yields:
    List that gets an entry per draw in the graph.
  """
  counters, draws = [], []
  original = tf.while_loop

  def while_loop(cond, body, loop_vars, **kwargs):
    def watched(counter, *values):
      counters.append(counter)
      return body(counter, *values)

    return original(cond, watched, loop_vars, **kwargs)

  def random_normal(shape, **unused_kwargs):
    draws.append(shape)
    draw = tf.gather(tf.constant(noise), counters[-1])
    with tf.control_dependencies([tf.assert_equal(shape, tf.shape(draw))]):
      return tf.identity(draw)

  with monkeypatch.context() as patch:
    patch.setattr(tf, 'while_loop', while_loop)
    patch.setattr(tf, 'random_normal', random_normal)
    yield draws


@contextlib.contextmanager
def recorded_uniform(monkeypatch, make_draw):
  """Replace the uniform draws of what is built within.

  Args:
    monkeypatch: Fixture of pytest.
    make_draw: Function from lower and upper bound to the tensor to use.
  """

  def random_uniform(shape, minval=0, maxval=None, *unused, **unused_kwargs):
    return make_draw(minval, maxval)

  with monkeypatch.context() as patch:
    patch.setattr(tf, 'random_uniform', random_uniform)
    yield
