"""Helpers for networks, episodes and processes."""

import functools
import importlib
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.run import mpi, stopping

if TYPE_CHECKING:
  from agents.tools.tf1 import tf

# Arrays [episodes, time, size] or, of transitions, [batch, size].
Episode = dict[str, np.ndarray]

# The product's programs end all ranks by `agents.run.entry`.
install_mpi_excepthook = mpi.abort_on_errors


def store_args(method: Callable[..., None]) -> Callable[..., None]:
  """Store all arguments of a constructor as attributes, including defaults.

  Includes those in **kwargs. Not used by this project.
  """
  spec = inspect.getfullargspec(method)
  names, kwdefaults = spec.args[1:], spec.kwonlydefaults or {}
  defaults = dict(zip(names[::-1], (spec.defaults or ())[::-1]), **kwdefaults)

  @functools.wraps(method)
  def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
    vars(self).update({**defaults, **dict(zip(names, args)), **kwargs})
    method(self, *args, **kwargs)

  return wrapper


def import_function(spec: str) -> Any:
  """Return the object with a name such as `module:name`."""
  module, name = spec.split(':')
  return getattr(importlib.import_module(module), name)


def flatten_grads(
  var_list: 'Sequence[tf.Variable]', grads: 'Sequence[tf.Tensor]'
) -> 'tf.Tensor':
  """Return gradients as one vector, variable by variable, row by row."""
  from agents.tools.tf1 import tf

  sizes = [int(np.prod(x.shape.as_list())) for x in var_list]
  return tf.concat([tf.reshape(x, [n]) for x, n in zip(grads, sizes)], 0)


def nn(
  input: 'tf.Tensor',
  layers_sizes: Sequence[int],
  reuse: bool | None = None,
  flatten: bool = False,
  name: str = '',
) -> 'tf.Tensor':
  """Define a fully connected network with ReLU between the layers.

  Args:
    input: Float tensor [batch, features].
    layers_sizes: Number of units of each layer; the last one is linear.
    reuse: Whether to share the weights of an earlier call.
    flatten: Whether to remove the last dimension, of size one.
    name: Prefix of the scopes, which are `<name>_0`, `<name>_1`, ...

  Returns:
    Float tensor [batch, last size], or [batch] if flattened.
  """
  from agents.tools import layers
  from agents.tools.tf1 import tf

  with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):
    for index, size in enumerate(layers_sizes):
      last = index == len(layers_sizes) - 1
      activation = None if last else tf.nn.relu
      input = layers.dense(input, size, activation, scope=f'{name}_{index}')
  if flatten:
    assert layers_sizes[-1] == 1, layers_sizes
    input = tf.reshape(input, [-1])
  return input


def clip(values: np.ndarray, limit: float | np.ndarray) -> np.ndarray:
  """Equivalent of `np.clip` that is faster for small arrays."""
  return np.minimum(np.maximum(values, -limit), limit)


def convert_episode_to_batch_major(
  episode: dict[str, list[np.ndarray]],
) -> Episode:
  """Convert lists over time of arrays [batch, size] to [batch, time, size]."""
  return {k: np.array(x).swapaxes(0, 1) for k, x in episode.items()}


def simple_goal_subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Return the difference of two goals of the same shape."""
  assert a.shape == b.shape, (a.shape, b.shape)
  return a - b


def transitions_in_episode_batch(episode_batch: Mapping[str, Any]) -> int:
  """Return the number of transitions in a batch of episodes."""
  if 'length' in episode_batch:
    return int(np.sum(episode_batch['length']))
  return int(np.prod(episode_batch['u'].shape[:2]))


def reshape_for_broadcasting(
  source: 'tf.Tensor', target: 'tf.Tensor'
) -> 'tf.Tensor':
  """Reshape a vector to [1, ..., 1, size], with the target's rank and dtype."""
  from agents.tools.tf1 import tf

  shape = [1] * (len(target.shape) - 1) + [-1]
  return tf.reshape(tf.cast(source, target.dtype), shape)


def mpi_fork(n: int, extra_mpi_args: Sequence[str] = ()) -> str:
  """Start the same program again as several processes under mpirun.

  `SIGNALS` of `agents.run.stopping` reach them as SIGUSR1, because mpirun would
  end them after others before they have saved. The second time, it does. They
  also get SIGUSR1 when this process is killed.

  Args:
    n: Number of processes.
    extra_mpi_args: Further arguments of mpirun.

  Returns:
    `child` in the processes that do the work, `parent` in the process that
    started them and waited for them to end.

  Raises:
    UsageError: If mpirun is missing.
    subprocess.CalledProcessError: If one of the processes fails.
  """
  if n <= 1 or os.environ.get('IN_MPI') or mpi.world().Get_size() > 1:
    return 'child'
  names = ['MKL_NUM_THREADS', 'OMP_NUM_THREADS', 'IN_MPI']
  if os.geteuid() == 0:
    # Open MPI refuses otherwise, but containers often have no other user.
    names += ['OMPI_ALLOW_RUN_AS_ROOT', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM']
  mpirun = mpi.find_mpirun(f'Flag --num_cpu={n}')
  spec = sys.modules['__main__'].__spec__
  program = ['-m', spec.name, *sys.argv[1:]] if spec else sys.argv
  command = [mpirun, '-n', str(n), *extra_mpi_args, sys.executable, *program]
  process = subprocess.Popen(
    command,
    env={**os.environ, **dict.fromkeys(names, '1')},
    # Or Ctrl-C would reach mpirun, too.
    start_new_session=True,
    # If this process is killed, the ranks save, too.
    preexec_fn=lambda: stopping.follow_parent(signal.SIGUSR1),
  )
  began = None

  def forward(number, unused_frame):
    nonlocal began
    if began is None:
      began = time.monotonic()
      process.send_signal(signal.SIGUSR1)
    elif stopping.counts_again(number, began):
      process.terminate()

  with process:
    for number in stopping.SIGNALS:
      # SIGHUP is ignored under nohup.
      if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, forward)
    if code := process.wait():
      raise subprocess.CalledProcessError(code, command)
  return 'parent'
