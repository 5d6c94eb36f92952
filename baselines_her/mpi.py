"""Averages and Adam over all ranks, or in a single process without MPI."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents import utility
from agents.run import mpi
from agents.tools import callables, mpi_ops
from agents.tools.tf1 import tf
from baselines_her import tf_util, util

# How often the ranks compare their weights, in updates.
CHECK_EVERY = 100

# Collection of the slots of Adam, which files of weights leave out.
SLOTS = 'baselines_her_adam'


def mpi_mean(
  x: Any, axis: int = 0, comm: Any = None, keepdims: bool = False
) -> tuple[np.ndarray, int]:
  """Return the mean over one axis and all ranks, weighting elements equally.

  Args:
    x: Array; ranks may differ in the length of the axis.
    axis: Axis to average over.
    comm: Communicator; the world by default.
    keepdims: Whether to keep the axis, with length one.

  Returns:
    Tuple of the mean, float64, and the number of elements of all ranks.
  """
  x = np.asarray(x)
  assert x.ndim > 0, 'scalars have no axis'
  comm = comm or mpi.world()
  sums = x.sum(axis=axis, keepdims=keepdims, dtype=np.float64)
  local = np.append(sums.ravel(), x.shape[axis])
  total = np.empty_like(local)
  comm.Allreduce(local, total)
  return (total[:-1] / total[-1]).reshape(sums.shape), int(total[-1])


def mpi_moments(
  x: Any, axis: int = 0, comm: Any = None, keepdims: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
  """Return mean, population standard deviation and count over all ranks.

  Uses two passes, so that large means lose no precision. See `mpi_mean`.
  """
  x = np.asarray(x)
  mean, count = mpi_mean(x, axis, comm, keepdims=True)
  variance, _ = mpi_mean(np.square(x - mean), axis, comm, keepdims=True)
  std = np.sqrt(variance)
  if not keepdims:
    mean, std = mean.squeeze(axis), std.squeeze(axis)
  return mean, std, count


def mpi_average(value: Any) -> np.ndarray:
  """Return the mean of a number, or of a list's elements, over all ranks.

  Ranks may have lists of different lengths; all elements count the same. The
  mean of nothing is zero.
  """
  values = np.ravel(value)
  local = np.array([values.sum(dtype=np.float64), values.size])
  total = np.empty_like(local)
  mpi.world().Allreduce(local, total)
  return np.asarray(total[0] / max(total[1], 1))


def check_seeds(comm: Any) -> None:
  """Check that ranks explore differently, by one random draw on each.

  Raises:
    RuntimeError: If they do not.
  """
  local = np.random.uniform(size=(1,))
  root = local.copy()
  comm.Bcast(root, root=0)
  # No assert, which python -O leaves out.
  if comm.Get_rank() != 0 and local[0] == root[0]:
    raise RuntimeError(
      'Two ranks draw the same random numbers; give each rank its own seed.'
    )


class MpiAdam:
  """Adam in the graph, with gradients from all ranks.

  The formula is that of Kingma and Ba, arXiv:1412.6980, section 2, with both
  bias corrections in the step size. Its slots are variables in the collection
  `SLOTS`.

  Args:
    var_list: Variables of the default graph to update.
    beta1: Decay of the first moment.
    beta2: Decay of the second moment.
    epsilon: Added to the root of the second moment.
    scale_grad_by_procs: Whether to average gradients over ranks instead of
      summing them.
    comm: Communicator; the world by default.
    sess: Session; the default one if not given.
  """

  def __init__(
    self,
    var_list: Iterable[tf.Variable],
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    scale_grad_by_procs: bool = True,
    comm: Any = None,
    sess: tf.Session | None = None,
  ):
    self.var_list = list(var_list)
    self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
    self.scale_grad_by_procs = scale_grad_by_procs
    self.comm = comm or mpi.world()
    self._sess = sess or tf_util.get_session()
    # The fused operation computes 1 - beta in 32 bits, where 1 - 0.999 is off
    # by 1e-5. Moments that are too small or large by constant factors lead
    # to the right weights with another step size and epsilon.
    self._m_factor, self._v_factor = (
      float((np.float32(1) - np.float32(x)) / np.float32(1 - x))
      for x in (beta1, beta2)
    )
    with tf.variable_scope(None, 'adam'):
      self._m = [_slot(tf.zeros(x.shape), 'm') for x in self.var_list]
      self._v = [_slot(tf.zeros(x.shape), 'v') for x in self.var_list]
      self._t = _slot(tf.zeros([], tf.int64), 't')
    self._slots = [*self._m, *self._v, self._t]
    flat = {'theta': self.var_list, 'm': self._m, 'v': self._v}
    self._get = {k: tf_util.GetFlat(x, self._sess) for k, x in flat.items()}
    self._set = tf_util.SetFromFlat(self.var_list, sess=self._sess)
    utility.initialize_variables(self._sess, None, None, variables=self._slots)

  @property
  def t(self) -> int:
    """Number of updates so far."""
    return int(self._sess.run(self._t))

  @property
  def m(self) -> np.ndarray:
    """First moment as one vector."""
    return self._get['m']() / np.float32(self._m_factor)

  @property
  def v(self) -> np.ndarray:
    """Second moment as one vector."""
    return self._get['v']() / np.float32(self._v_factor)

  def define_update(
    self, gradients: Sequence[tf.Tensor], stepsize: float | tf.Tensor
  ) -> tf.Operation:
    """Define an operation that sums gradients over ranks and applies them.

    All ranks must execute it, in the same order as other communication.

    Args:
      gradients: Tensors in the shapes of the variables.
      stepsize: Learning rate, number or tensor.
    """
    gradients = self._combine(gradients)
    t = tf.cast(tf.assign_add(self._t, 1), tf.float64)
    stepsize = tf.cast(stepsize, tf.float64)
    stepsize *= tf.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
    v_root = self._v_factor**0.5
    stepsize = tf.cast(stepsize * v_root / self._m_factor, tf.float32)
    # Powers of zero: the corrections are in the step size already, where
    # they have 64 bits.
    apply = functools.partial(
      tf.raw_ops.ResourceApplyAdam,
      beta1_power=0.0,
      beta2_power=0.0,
      lr=stepsize,
      beta1=self.beta1,
      beta2=self.beta2,
      epsilon=self.epsilon * v_root,
    )
    rows = zip(self.var_list, self._m, self._v, gradients)
    return tf.group(
      *[
        apply(var=x.handle, m=m.handle, v=v.handle, grad=gradient)
        for x, m, v, gradient in rows
      ]
    )

  def update(self, localg: np.ndarray, stepsize: float) -> None:
    """Update the variables.

    Args:
      localg: Gradient of this rank as one vector.
      stepsize: Learning rate.
    """
    if self.t % CHECK_EVERY == 0:
      self.check_synced()
    self._host_update(localg, stepsize)

  def sync(self) -> None:
    """Copy the variables of the first rank to all ranks."""
    theta = self._get['theta']()
    self.comm.Bcast(theta, root=0)
    self._set(theta)

  def check_synced(self) -> None:
    """Check that all ranks have the same variables, bit for bit.

    Raises:
      RuntimeError: If they do not.
    """
    if self.comm.Get_size() > 1:
      mpi_ops.check_same([self._get['theta']()], self.comm)

  def get_slots(self) -> list[np.ndarray]:
    """Return moments and number of updates for checkpoints."""
    return self._sess.run(self._slots)

  def set_slots(self, values: Sequence[np.ndarray]) -> None:
    """Restore the result of `get_slots`."""
    for slot, value in zip(self._slots, values):
      slot.load(value, self._sess)

  @functools.cached_property
  def _host_update(self) -> Callable[..., Any]:
    size = sum(tf_util.numel(x) for x in self.var_list)
    with self._sess.graph.as_default():
      feeds = [
        tf.placeholder(tf.float32, [size], 'gradient'),
        tf.placeholder(tf.float64, [], 'stepsize'),
      ]
      gradients = tf_util.split_flat(feeds[0], self.var_list)
      update = self.define_update(gradients, feeds[1])
    return callables.make_function(update, feeds, self._sess)

  def _combine(self, gradients: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
    if self.comm.Get_size() == 1:
      return gradients
    total = mpi_ops.allreduce(
      util.flatten_grads(self.var_list, gradients), self.comm
    )
    if self.scale_grad_by_procs:
      total /= self.comm.Get_size()
    return tf_util.split_flat(total, self.var_list)


def _slot(value: tf.Tensor, name: str) -> tf.Variable:
  return tf.Variable(
    value, trainable=False, name=name, collections=[SLOTS], use_resource=True
  )
