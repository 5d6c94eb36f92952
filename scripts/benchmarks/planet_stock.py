"""Operations of the original PlaNet that this project replaces."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from agents.tools import layers
from agents.tools.tf1 import tf
from planet import models
from planet.control import planning
from planet.tools import unroll
from planet.tools.shape import shape


@contextlib.contextmanager
def formulation() -> Iterator[None]:
  """Use the functions of this module instead of ours."""
  with (
    mock.patch.object(layers, 'conv2d_transpose', conv2d_transpose),
    mock.patch.object(models.RSSM, '_define_posterior', define_posterior),
    mock.patch.object(unroll, 'closed_loop', closed_loop),
    mock.patch.object(planning, '_predict', predict),
  ):
    yield


def conv2d_transpose(
  inputs: tf.Tensor,
  filters: int,
  kernel_size: int,
  strides: int = 1,
  activation: Callable[[tf.Tensor], tf.Tensor] | None = None,
  name: str = 'conv2d_transpose',
) -> tf.Tensor:
  """Apply a transposed convolution with the general kernel for all sizes."""
  _, height, width, channels = inputs.shape.as_list()
  with tf.variable_scope(None, name):
    kernel = layers._kernel(
      'kernel', (kernel_size, kernel_size, filters, channels)
    )
    size = [(x - 1) * strides + kernel_size for x in (height, width)]
    sizes = tf.stack([tf.shape(inputs)[0]] + size + [filters])
    outputs = tf.nn.conv2d_transpose(inputs, kernel, sizes, strides, 'VALID')
    outputs.set_shape([inputs.shape.as_list()[0]] + size + [filters])
    outputs = tf.nn.bias_add(outputs, layers._bias(filters))
    return activation(outputs) if activation else outputs


def closed_loop(
  cell: Any, embedded: tf.Tensor, prev_action: tf.Tensor, debug: bool = False
) -> tuple[Any, Any]:
  """Unroll with a condition at every step whether to use the observation."""
  del debug
  use_obs = tf.ones(tf.shape(embedded[:, :, :1])[:3], tf.bool)
  (prior, posterior), _ = tf.nn.dynamic_rnn(
    cell,
    (embedded, prev_action, use_obs),
    dtype=tf.float32,
    swap_memory=True,
  )
  return prior, posterior


def predict(cell: Any, state: Any, obs: tf.Tensor, actions: tf.Tensor) -> Any:
  """Unroll over zero observations, for the planner."""
  batch, horizon = shape(actions)[:2]
  zeros = tf.zeros(tf.stack([batch, horizon] + shape(obs)[1:]))
  zeros.set_shape([None, horizon] + obs.shape.as_list()[1:])
  use_obs = tf.zeros(tf.stack([batch, horizon, 1]), tf.bool)
  (_, states), _ = tf.nn.dynamic_rnn(
    cell,
    (zeros, actions, use_obs),
    initial_state=state,
  )
  return states


def define_posterior(
  self, prev_state: Any, prev_action: tf.Tensor, obs: tf.Tensor, prior: Any
) -> Any:
  """Define the posterior by computing the prior again."""
  del prior
  return self._posterior_tpl(prev_state, prev_action, obs)
