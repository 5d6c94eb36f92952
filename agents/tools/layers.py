"""Layers as functions on `tf.get_variable`, without Keras.

Every call opens a new scope inside the current one (`dense`, `dense_1`, ...),
so that `tf.make_template` shares the weights between calls. Names and
initializers are those of the original `tf.layers`: Glorot uniform kernels and
zero biases.
"""

from collections.abc import Callable
from typing import Any

from agents.tools.tf1 import tf

# Numbers in a vector of AVX-512, which oneDNN fills with channels.
_VECTOR = 16


def dense(
  inputs: tf.Tensor,
  units: int,
  activation: Callable[[tf.Tensor], tf.Tensor] | None = None,
  kernel_initializer: Any = None,
  trainable: bool = True,
  scope: Any = None,
) -> tf.Tensor:
  """Fully connected layer over the last dimension.

  Args:
    inputs: Float tensor [..., features]; the last dimension must be known.
    units: Number of outputs.
    activation: Function of the result; linear by default.
    kernel_initializer: Initializer of the kernel [features, units].
    trainable: Whether the variables are trainable.
    scope: Exact name of the scope, to share the weights of an earlier call
      where variables are reused.

  Returns:
    Float tensor [..., units].
  """
  features = inputs.shape.as_list()[-1]
  with tf.variable_scope(scope, None if scope else 'dense'):
    kernel = _kernel('kernel', (features, units), kernel_initializer, trainable)
    is_matrix = inputs.shape.ndims == 2
    flat = inputs if is_matrix else tf.reshape(inputs, [-1, features])
    outputs = tf.matmul(flat, kernel)
    outputs = tf.nn.bias_add(outputs, _bias(units, trainable))
    if activation:
      outputs = activation(outputs)
    if not is_matrix:
      outputs = _restore_batch_dims(outputs, inputs, [units])
    return outputs


def conv2d(
  inputs: tf.Tensor,
  filters: int,
  kernel_size: int,
  strides: int = 1,
  activation: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> tf.Tensor:
  """Convolution without padding, channels last.

  Args:
    inputs: Float tensor [batch, height, width, channels].
    filters: Number of output channels.
    kernel_size: Height and width of the kernel.
    strides: Stride of the kernel in both directions.
    activation: Function of the result; linear by default.

  Returns:
    Float tensor [batch, new height, new width, filters].
  """
  channels = inputs.shape.as_list()[-1]
  with tf.variable_scope(None, 'conv2d'):
    kernel = _kernel('kernel', (kernel_size, kernel_size, channels, filters))
    outputs = tf.nn.conv2d(inputs, kernel, strides, 'VALID')
    outputs = tf.nn.bias_add(outputs, _bias(filters))
    return activation(outputs) if activation else outputs


def conv2d_transpose(
  inputs: tf.Tensor,
  filters: int,
  kernel_size: int,
  strides: int = 1,
  activation: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> tf.Tensor:
  """Transposed convolution without padding, channels last.

  Two cases use faster kernels and give the same numbers up to rounding: inputs
  of one pixel use a matrix product, and few output channels use a rearranged
  plain convolution.

  Args:
    inputs: Float tensor [batch, height, width, channels].
    filters: Number of output channels.
    kernel_size: Height and width of the kernel.
    strides: Distance between the outputs of neighboring inputs.
    activation: Function of the result; linear by default.

  Returns:
    Float tensor [batch, (height - 1) * strides + kernel_size, same for the
    width, filters]. The kernel variable is [kernel_size, kernel_size,
    filters, channels].
  """
  _, height, width, channels = inputs.shape.as_list()
  with tf.variable_scope(None, 'conv2d_transpose'):
    kernel = _kernel('kernel', (kernel_size, kernel_size, filters, channels))
    if height == width == 1:
      flat = tf.reshape(kernel, [kernel_size**2 * filters, channels])
      outputs = tf.matmul(
        tf.reshape(inputs, [-1, channels]), flat, transpose_b=True
      )
      outputs = tf.reshape(outputs, [-1, kernel_size, kernel_size, filters])
    elif _is_faster_rearranged(filters, kernel_size, strides):
      outputs = _transpose_to_few(inputs, kernel, strides)
    else:
      size = [(x - 1) * strides + kernel_size for x in (height, width)]
      shape = tf.stack([tf.shape(inputs)[0]] + size + [filters])
      outputs = tf.nn.conv2d_transpose(inputs, kernel, shape, strides, 'VALID')
      outputs.set_shape([inputs.shape.as_list()[0]] + size + [filters])
    outputs = tf.nn.bias_add(outputs, _bias(filters))
    return activation(outputs) if activation else outputs


def gru_cell(
  inputs: tf.Tensor, state: tf.Tensor, basic: bool | None = None
) -> tf.Tensor:
  """Compute one step of a gated recurrent unit (GRU) in the block layout.

  With inputs x, state h, and gates in the order reset, update:

    [r, u] = sigmoid([x, h] w_ru + b_ru)
    c = tanh([x, r * h] w_c + b_c)
    h' = u * h + (1 - u) * c

  The bias of the gates starts at one. This is not the layout of Keras.

  Args:
    inputs: Float tensor [batch, features].
    state: Float tensor [batch, units].
    basic: Whether to compute it by basic operations, instead of a single one;
      by default within functions, as XLA does not know the single one.

  Returns:
    New state [batch, units], which is also the output.
  """
  features = inputs.shape.as_list()[-1]
  units = state.shape.as_list()[-1]
  if basic is None:
    basic = tf.get_default_graph().building_function
  with tf.variable_scope(None, 'gru_cell'):
    w_ru = _kernel('w_ru', (features + units, 2 * units))
    b_ru = tf.get_variable(
      'b_ru', (2 * units,), initializer=tf.ones_initializer()
    )
    w_c = _kernel('w_c', (features + units, units))
    b_c = tf.get_variable('b_c', (units,), initializer=tf.zeros_initializer())
    if basic:
      gates = tf.sigmoid(tf.concat([inputs, state], 1) @ w_ru + b_ru)
      reset, update = gates[:, :units], gates[:, units:]
      new = tf.tanh(tf.concat([inputs, reset * state], 1) @ w_c + b_c)
      return update * state + (1 - update) * new
    return tf.raw_ops.GRUBlockCell(
      x=inputs, h_prev=state, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c
    ).h


def _kernel(name, shape, initializer=None, trainable=True):
  initializer = initializer or tf.glorot_uniform_initializer()
  return tf.get_variable(
    name, shape, initializer=initializer, trainable=trainable
  )


def _is_faster_rearranged(filters, kernel_size, strides):
  divisible = strides > 1 and kernel_size % strides == 0
  return divisible and strides**2 * filters <= _VECTOR


def _transpose_to_few(inputs, kernel, strides):
  """Compute a transposed convolution to few channels by a plain convolution.

  oneDNN computes as many channels as its vectors hold. So all outputs between
  two inputs are computed as channels, and then moved to their positions. The
  gradients are those of the general kernel.

  Args:
    inputs: Float tensor [batch, height, width, channels].
    kernel: Float tensor [size, size, filters, channels].
    strides: Stride, a divisor of the size.
  """
  size, _, filters, channels = kernel.shape.as_list()
  taps = size // strides

  @tf.custom_gradient
  def apply(inputs, kernel):
    between = tf.reshape(
      kernel, [taps, strides, taps, strides, filters, channels]
    )
    between = tf.transpose(tf.reverse(between, [0, 2]), [0, 2, 5, 1, 3, 4])
    between = tf.reshape(between, [taps, taps, channels, -1])
    padding = [[0, 0], [taps - 1] * 2, [taps - 1] * 2, [0, 0]]
    outputs = tf.nn.conv2d(inputs, between, 1, padding)

    def grad(change):
      d_kernel = tf.nn.conv2d_backprop_filter(
        change,
        [size, size, filters, channels],
        inputs,
        [1, strides, strides, 1],
        'VALID',
      )
      return tf.nn.conv2d(change, kernel, strides, 'VALID'), d_kernel

    return tf.nn.depth_to_space(outputs, strides), grad

  return apply(inputs, kernel)


def _bias(units, trainable=True):
  return tf.get_variable(
    'bias', (units,), initializer=tf.zeros_initializer(), trainable=trainable
  )


def _restore_batch_dims(outputs, inputs, event_shape):
  """Reshape [prod(batch dims), ...] to the leading dimensions of inputs."""
  static = inputs.shape.as_list()[:-1]
  dynamic = tf.shape(inputs)
  dims = [dynamic[i] if x is None else x for i, x in enumerate(static)]
  outputs = tf.reshape(outputs, tf.stack(dims + event_shape))
  outputs.set_shape(static + event_shape)
  return outputs


@tf.RegisterGradient('GRUBlockCell')
def _gru_gradient(op, *grads):
  """Return the gradients for all inputs; TensorFlow has none."""
  x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
  r, u, c, _ = op.outputs
  d_x, d_h_prev, d_c_bar, d_ru_bar = tf.raw_ops.GRUBlockCellGrad(
    x=x,
    h_prev=h_prev,
    w_ru=w_ru,
    w_c=w_c,
    b_ru=b_ru,
    b_c=b_c,
    r=r,
    u=u,
    c=c,
    d_h=grads[3],
  )
  d_w_ru = tf.matmul(tf.concat([x, h_prev], 1), d_ru_bar, transpose_a=True)
  d_w_c = tf.matmul(tf.concat([x, h_prev * r], 1), d_c_bar, transpose_a=True)
  return (
    d_x,
    d_h_prev,
    d_w_ru,
    d_w_c,
    tf.reduce_sum(d_ru_bar, 0),
    tf.reduce_sum(d_c_bar, 0),
  )
