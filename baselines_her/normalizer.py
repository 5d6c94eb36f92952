"""Normalize observations and goals by statistics over all ranks."""

import numpy as np

from agents.run import mpi
from agents.tools import callables
from agents.tools.tf1 import tf
from baselines_her import tf_util, util


class Normalizer:
  """Subtract the mean and divide by the standard deviation of all data so far.

  `update` collects values, which take effect in `recompute_stats`. The
  variables `sum`, `sumsq`, `count`, `mean` and `std` are created in the current
  scope. The count starts at one, equivalent to an observation of zero.

  Args:
    size: Number of dimensions.
    eps: Minimum standard deviation.
    default_clip_range: Maximum magnitude of normalized values.
    sess: Session; the default one if not given.
  """

  def __init__(
    self,
    size: int,
    eps: float = 1e-2,
    default_clip_range: float = np.inf,
    sess: tf.Session | None = None,
  ):
    self.size, self.eps = size, eps
    self.default_clip_range = default_clip_range
    self.sess = sess or tf_util.get_session()
    self.comm = mpi.world()
    self.sum = self._define_variable('sum', size, 0.0)
    self.sumsq = self._define_variable('sumsq', size, 0.0)
    self.count = self._define_variable('count', 1, 1.0)
    self.mean = self._define_variable('mean', size, 0.0)
    self.std = self._define_variable('std', size, 1.0)
    self._totals = self.sum, self.sumsq, self.count
    self._define_updates()
    self._forget()

  def update(self, v: np.ndarray) -> None:
    """Collect values [..., size]."""
    v = np.asarray(v).reshape(-1, self.size)
    sums, squares, count = self._local
    sums += v.sum(axis=0)
    squares += np.square(v).sum(axis=0)
    count += len(v)

  def recompute_stats(self) -> None:
    """Add the values collected by all ranks, averaged over ranks."""
    means = [np.empty_like(x) for x in self._local]
    for local, mean in zip(self._local, means):
      self.comm.Allreduce(local, mean)
      mean /= self.comm.Get_size()
    self._forget()
    # Two runs, as one would leave open what is read first.
    self._add(*means)
    self._recompute()

  def normalize(
    self, v: tf.Tensor, clip_range: float | None = None
  ) -> tf.Tensor:
    """Normalize and clip a tensor of any shape [..., size]."""
    if clip_range is None:
      clip_range = self.default_clip_range
    mean, std = self._moments(v)
    return tf.clip_by_value((v - mean) / std, -clip_range, clip_range)

  def denormalize(self, v: tf.Tensor) -> tf.Tensor:
    """Invert `normalize`, up to clipping."""
    mean, std = self._moments(v)
    return mean + v * std

  def _moments(self, v: tf.Tensor) -> list[tf.Tensor]:
    moments = self.mean, self.std
    return [util.reshape_for_broadcasting(x, v) for x in moments]

  def _forget(self) -> None:
    self._local = [np.zeros(x.shape, np.float32) for x in self._totals]

  def _define_variable(self, name: str, size: int, value: float) -> tf.Variable:
    initializer = tf.constant_initializer(value)
    return tf.get_variable(
      name, [size], initializer=initializer, trainable=False
    )

  def _define_updates(self) -> None:
    inputs = [tf.placeholder(tf.float32, x.shape) for x in self._totals]
    add = [tf.assign_add(x, y) for x, y in zip(self._totals, inputs)]
    self._add = callables.make_function(tf.group(*add), inputs, self.sess)
    mean = self.sum / self.count
    variance = self.sumsq / self.count - tf.square(mean)
    std = tf.sqrt(tf.maximum(tf.square(self.eps), variance))
    recompute = tf.group(tf.assign(self.mean, mean), tf.assign(self.std, std))
    self._recompute = callables.make_function(recompute, [], self.sess)


class IdentityNormalizer:
  """Replacement for `Normalizer` that only scales. Not used by this project.

  Args:
    size: Number of dimensions.
    std: Number to divide by.
  """

  default_clip_range = np.inf

  def __init__(self, size: int, std: float = 1.0):
    self.size = size
    self.mean = tf.zeros([size], tf.float32)
    self.std = std * tf.ones([size], tf.float32)

  def update(self, x: np.ndarray) -> None:
    """Ignore values."""

  def recompute_stats(self) -> None:
    """Do nothing."""

  def normalize(
    self, x: tf.Tensor, clip_range: float | None = None
  ) -> tf.Tensor:
    """Divide by the standard deviation."""
    return x / self.std

  def denormalize(self, x: tf.Tensor) -> tf.Tensor:
    """Invert `normalize`."""
    return x * self.std
