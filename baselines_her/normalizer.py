"""Observations and goals on a common scale, from statistics of all ranks."""

from collections.abc import Iterable

import numpy as np

from agents.run import mpi
from agents.tools.tf1 import tf
from baselines_her import tf_util, util

_TOTALS = ('sum', 'sumsq', 'count')


class Normalizer:
  """Subtract the mean and divide by the standard deviation of all so far.

  Values are gathered with `update` and take effect at `recompute_stats`. The
  variables `sum`, `sumsq`, `count`, `mean` and `std` live in the current
  scope. The count starts at one, which stays as an observation of zero.

  Args:
    size: Number of dimensions.
    eps: Smallest standard deviation.
    default_clip_range: Largest magnitude of normalised values.
    sess: Session; the default one if not given.
  """

  def __init__(
    self,
    size: int,
    eps: float = 1e-2,
    default_clip_range: float = np.inf,
    sess: tf.Session | None = None,
  ):
    self.size = size
    self.eps = eps
    self.default_clip_range = default_clip_range
    self.sess = sess or tf_util.get_session()
    self.comm = mpi.world()
    self._local = {x: np.zeros(n, np.float32) for x, n in self._shapes()}
    self._define_variables()

  def update(self, v: np.ndarray) -> None:
    """Gather values [..., size]."""
    v = np.asarray(v).reshape(-1, self.size)
    self._local['sum'] += v.sum(axis=0)
    self._local['sumsq'] += np.square(v).sum(axis=0)
    self._local['count'] += len(v)

  def recompute_stats(self) -> None:
    """Add what all ranks have gathered, averaged over them."""
    gathered = self._local
    self._local = {x: np.zeros(n, np.float32) for x, n in self._shapes()}
    feed = {self._inputs[k]: self._average(v) for k, v in gathered.items()}
    # Two runs, as one would leave open what is read first.
    self.sess.run(self._add_op, feed)
    self.sess.run(self._recompute_op)

  def normalize(
    self, v: tf.Tensor, clip_range: float | None = None
  ) -> tf.Tensor:
    """Normalise and clip a tensor of any shape [..., size]."""
    if clip_range is None:
      clip_range = self.default_clip_range
    mean = util.reshape_for_broadcasting(self.mean, v)
    std = util.reshape_for_broadcasting(self.std, v)
    return tf.clip_by_value((v - mean) / std, -clip_range, clip_range)

  def denormalize(self, v: tf.Tensor) -> tf.Tensor:
    """Undo `normalize`, up to clipping."""
    mean = util.reshape_for_broadcasting(self.mean, v)
    std = util.reshape_for_broadcasting(self.std, v)
    return mean + v * std

  def _shapes(self) -> Iterable[tuple[str, int]]:
    return zip(_TOTALS, (self.size, self.size, 1))

  def _define_variables(self) -> None:
    def variable(name: str, size: int, value: float) -> tf.Variable:
      return tf.get_variable(
        name,
        [size],
        initializer=tf.constant_initializer(value),
        trainable=False,
      )

    self.sum = variable('sum', self.size, 0.0)
    self.sumsq = variable('sumsq', self.size, 0.0)
    self.count = variable('count', 1, 1.0)
    self.mean = variable('mean', self.size, 0.0)
    self.std = variable('std', self.size, 1.0)
    self._inputs = {
      name: tf.placeholder(tf.float32, [n], name) for name, n in self._shapes()
    }
    self._add_op = tf.group(
      *[
        tf.assign_add(getattr(self, name), self._inputs[name])
        for name in _TOTALS
      ]
    )
    mean = self.sum / self.count
    variance = self.sumsq / self.count - tf.square(mean)
    std = tf.sqrt(tf.maximum(tf.square(self.eps), variance))
    self._recompute_op = tf.group(
      tf.assign(self.mean, mean), tf.assign(self.std, std)
    )

  def _average(self, value: np.ndarray) -> np.ndarray:
    total = np.empty_like(value)
    self.comm.Allreduce(value, total)
    return total / self.comm.Get_size()


class IdentityNormalizer:
  """Stands in for a `Normalizer`; only scales.

  Args:
    size: Number of dimensions.
    std: Number to divide by.
  """

  def __init__(self, size: int, std: float = 1.0):
    self.size = size
    self.mean = tf.zeros([size], tf.float32)
    self.std = std * tf.ones([size], tf.float32)

  def update(self, v: np.ndarray) -> None:
    """Ignore values."""

  def recompute_stats(self) -> None:
    """Leave everything as it is."""

  def normalize(
    self, v: tf.Tensor, clip_range: float | None = None
  ) -> tf.Tensor:
    """Divide by the standard deviation."""
    return v / self.std

  def denormalize(self, v: tf.Tensor) -> tf.Tensor:
    """Undo `normalize`."""
    return v * self.std
