"""A network as a module, and a model of two, as users of the original have."""

import numpy as np
from tensorflow_probability import distributions as tfd

from agents.tools.tf1 import tf
from planet import models


def encoder(obs):
  """Encode images with layers of TensorFlow 1."""
  image = obs['image']
  flat = tf.reshape(image, [-1, np.prod(image.shape[2:].as_list())])
  hidden = tf.layers.dense(flat, 8, tf.nn.relu)
  return tf.reshape(hidden, [*tf.unstack(tf.shape(image)[:2]), 8])


def decoder(state, data_shape):
  hidden = tf.layers.dense(state, int(np.prod(data_shape)))
  shape = tf.concat([tf.shape(state)[:-1], data_shape], 0)
  mean = tf.reshape(hidden, shape)
  return tfd.Independent(tfd.Normal(mean, 1.0), len(data_shape))


class Pair(models.Base):
  """Two RSSMs, with arguments of the original's first commits."""

  def __init__(self, state_size, belief_size, embed_size, mean_only=False):
    sizes = state_size, belief_size, embed_size
    self._cells = {x: models.RSSM(*sizes, mean_only=mean_only) for x in 'ab'}
    super().__init__(
      tf.make_template('transition', self._transition),
      tf.make_template('posterior', self._posterior),
    )

  @property
  def state_size(self):
    return {x: y.state_size for x, y in self._cells.items()}

  def features_from_state(self, state):
    parts = [y.features_from_state(state[x]) for x, y in self._cells.items()]
    return tf.concat(parts, -1)

  def dist_from_state(self, state, mask=None):
    return self._cells['a'].dist_from_state(state['a'], mask)

  def divergence_from_states(self, lhs, rhs, mask=None):
    return sum(
      y.divergence_from_states(lhs[x], rhs[x], mask)
      for x, y in self._cells.items()
    )

  def _transition(self, prev_state, prev_action, zero_obs):
    return {
      x: y._transition_tpl(prev_state[x], prev_action, zero_obs)
      for x, y in self._cells.items()
    }

  def _posterior(self, prev_state, prev_action, obs):
    return {
      x: y._posterior_tpl(prev_state[x], prev_action, obs)
      for x, y in self._cells.items()
    }
