"""Define the networks of the model: latent dynamics, encoder and heads."""

import math
from typing import TYPE_CHECKING

from agents.tools.tf1 import tf
from planet.tools import compiled, unroll
from planet.tools.attr_dict import AttrDict

if TYPE_CHECKING:
  from planet.scripts.configs import Config


def define_networks(
  data: dict[str, tf.Tensor], config: 'Config | AttrDict'
) -> AttrDict:
  """Define model, encoder and heads, and apply them to a batch of data.

  Args:
    data: Dict of tensors [batch, time, ...].
    config: Configuration.

  Returns:
    Locked AttrDict of `cell`, `encoder`, `heads`, `data`, `embedded`, the
    states `prior` and `posterior`, dicts of tensors [batch, time, ...], and
    `preprocess`, the function from observations to encoder inputs.
  """
  preprocess = config.preprocess_fn
  if config.observation in ('vector', 'both'):
    keys = [x for x in config.observation_keys if x != 'image']
    vector = tf.concat([data[key] for key in keys], -1)
    preprocess = normalize = _define_normalization(vector.shape[-1], config)
    data = dict(data, vector=normalize(vector))
  if config.observation == 'both':
    shape = data['image'].shape[2:].as_list()

    def preprocess(observ):
      # See `constructors.join`.
      image, vector = tf.split(observ, [math.prod(shape), -1], -1)
      image = config.preprocess_fn(tf.reshape(image, [-1, *shape]))
      return {'image': image, 'vector': normalize(vector)}

  cell = config.cell()
  encoder = tf.make_template('encoder', config.encoder, create_scope_now_=True)
  heads = _define_heads(data, cell, config)
  embedded = encoder(data)
  if config.get('xla'):
    prior, posterior = compiled.closed_loop(cell, embedded, data['action'])
  else:
    prior, posterior = unroll.closed_loop(
      cell, embedded, data['action'], config.debug
    )
  return AttrDict(
    cell=cell,
    encoder=encoder,
    heads=heads,
    data=data,
    embedded=embedded,
    prior=prior,
    posterior=posterior,
    preprocess=preprocess,
  )


def _define_normalization(size, config):
  """Return a function that normalizes vectors by statistics in checkpoints."""
  statistics = config.get('vector_statistics')
  mean, stddev = statistics or (tf.zeros([size]), tf.ones([size]))
  with tf.variable_scope('normalize'):
    mean = tf.get_variable('mean', initializer=mean, trainable=False)
    stddev = tf.get_variable('stddev', initializer=stddev, trainable=False)
  return lambda vector: (vector - mean) / stddev


def _define_heads(data, cell, config):
  """Return templates of all heads, and create their weights."""
  heads = {}
  features = cell.features_from_state(cell.zero_state(1, tf.float32))
  for key, head in config.heads.items():
    source = 'action' if key == 'action_target' else key
    heads[key] = tf.make_template(
      f'head_{key}',
      head,
      create_scope_now_=True,
      data_shape=data[source].shape[2:].as_list(),
    )
    heads[key](features)
  return AttrDict(heads)
