"""Running mean and deviation of a stream of values."""

import collections

from agents.tools import scopes
from agents.tools.tf1 import tf

_Moments = collections.namedtuple('_Moments', 'count, mean, var_sum')


class StreamingNormalize:
  """Normalise values by all those seen so far, without decay.

  Args:
    template: Tensor shaped like one value.
    center: Subtract the mean.
    scale: Divide by the standard deviation.
    clip: Largest magnitude of a normalised value, None for no limit.
    name: Scope of the variables `count`, `mean` and `var_sum`.
    deferred: Count values apart, without effect until `merge` adds those of
      all processes.
  """

  def __init__(
    self,
    template: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    clip: float | None = 10,
    name: str = 'normalize',
    deferred: bool = False,
  ) -> None:
    self._center = center
    self._scale = scale
    self._clip = clip
    self._name = name
    shape = template.shape.as_list()
    self._seen = self._fresh = _define_moments(name, shape)
    if deferred:
      self._fresh = _define_moments(f'{name}_temporary', shape)

  def transform(self, value: tf.Tensor) -> tf.Tensor:
    """Normalise a value or a batch of them.

    Before the second value there is no deviation to divide by.

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Float tensor of the same shape.
    """
    with tf.name_scope(f'{self._name}/transform'):
      value = tf.convert_to_tensor(value)
      single = value.shape.ndims == self._seen.mean.shape.ndims
      value = value[None] if single else value
      if self._center:
        value -= self._seen.mean[None]
      if self._scale:
        std = self._std() + 1e-8
        value /= tf.where(self._seen.count > 1, std, tf.ones_like(std))[None]
      if self._clip:
        value = tf.clip_by_value(value, -self._clip, self._clip)
      value = value[0] if single else value
      return tf.check_numerics(value, 'value')

  def update(self, value: tf.Tensor) -> tf.Tensor:
    """Count a value, or a batch of them.

    Exact for batches; with n new values the deviation uses the old and the
    new mean (Chan et al., 1979).

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Serialised summary of the mean of the input, `value`.
    """
    with tf.name_scope(f'{self._name}/update'):
      value = tf.convert_to_tensor(value)
      if value.shape.ndims == self._seen.mean.shape.ndims:
        value = value[None]
      old = self._fresh
      count = old.count + tf.shape(value)[0]
      change = tf.reduce_sum(value - old.mean[None], 0)
      mean = old.mean + change / tf.cast(count, tf.float32)
      mean = tf.where(count > 1, mean, value[0])
      var_sum = old.var_sum + tf.reduce_sum(
        (value - old.mean[None]) * (value - mean[None]), 0
      )
      with tf.control_dependencies([_assign(old, count, mean, var_sum)]):
        return tf.summary.scalar('value', tf.reduce_mean(value))

  @property
  def news(self) -> tf.Tensor:
    """What was counted since the last `merge`, float64 [size]."""
    parts = [tf.reshape(tf.cast(x, tf.float64), [-1]) for x in self._fresh]
    return tf.concat(parts, 0)

  def merge(self, news: tf.Tensor) -> tf.Operation:
    """Add what several processes have counted, and begin to count anew.

    Exact but for rounding (Chan et al., 1979).

    Args:
      news: The `news` of all processes, float64 [processes, size].

    Returns:
      Operation.
    """
    with tf.name_scope(f'{self._name}/merge'):
      seen = _Moments(*[tf.cast(x, tf.float64) for x in self._seen])
      shape = self._seen.mean.shape
      size = shape.num_elements()
      counts, means, var_sums = tf.split(news, [1, size, size], 1)
      added = tf.reduce_sum(counts)
      mean = tf.reduce_sum(counts * means, 0) / tf.maximum(added, 1)
      var_sum = tf.reduce_sum(var_sums + counts * (means - mean) ** 2, 0)
      change = tf.reshape(mean, shape) - seen.mean
      count = seen.count + added
      part = added / tf.maximum(count, 1)
      update = _assign(
        self._seen,
        count,
        seen.mean + part * change,
        seen.var_sum
        + tf.reshape(var_sum, shape)
        + part * seen.count * change**2,
      )
      with tf.control_dependencies([update]):
        return _assign(self._fresh, *[tf.zeros_like(x) for x in self._fresh])

  def reset(self) -> tf.Operation:
    """Forget all values."""
    with tf.name_scope(f'{self._name}/reset'):
      return tf.group(
        *[x.assign(tf.zeros_like(x)) for x in (*self._seen, *self._fresh)]
      )

  def summary(self) -> tf.Tensor:
    """Define a summary of `mean` and `stddev`, as far as they exist."""
    with tf.name_scope(f'{self._name}/summary'):
      summarize = (
        tf.summary.histogram
        if self._seen.mean.shape.ndims
        else tf.summary.scalar
      )
      return tf.summary.merge(
        [
          tf.cond(
            self._seen.count > 0,
            lambda: summarize('mean', tf.identity(self._seen.mean)),
            str,
          ),
          tf.cond(
            self._seen.count > 1, lambda: summarize('stddev', self._std()), str
          ),
        ]
      )

  def _std(self):
    """Standard deviation; NaN below two values."""
    others = tf.cast(tf.maximum(self._seen.count - 1, 1), tf.float32)
    # The constant keeps the square root away from zero.
    std = tf.sqrt(self._seen.var_sum / others + 1e-4)
    return tf.where(self._seen.count > 1, std, float('nan') * tf.ones_like(std))


def _define_moments(scope, shape):
  """Create variables, all zero."""
  with scopes.uncached_scope(scope):
    return _Moments(
      _variable('count', (), tf.int32),
      _variable('mean', shape, tf.float32),
      _variable('var_sum', shape, tf.float32),
    )


def _assign(variables, *values):
  """Assign values, once all of them are known: they depend on the old ones."""
  with tf.control_dependencies(values):
    return tf.group(
      *[x.assign(tf.cast(y, x.dtype)) for x, y in zip(variables, values)]
    )


def _variable(name, shape, dtype):
  return tf.get_variable(
    name, shape, dtype, tf.zeros_initializer(), trainable=False
  )
