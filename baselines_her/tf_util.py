"""Sessions, graph functions, flat vectors of variables, and their files."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from agents.run import errors, files, random_state
from agents.tools import devices
from agents.tools.tf1 import tf
from baselines_her import util

set_global_seeds = random_state.set_seeds


def get_session(config: tf.ConfigProto | None = None) -> tf.Session:
  """Return the default session; create an interactive one if needed."""
  return tf.get_default_session() or make_session(config, make_default=True)


def make_session(
  config: tf.ConfigProto | None = None,
  num_cpu: int | None = None,
  make_default: bool = False,
  graph: tf.Graph | None = None,
) -> tf.Session:
  """Create a session with a number of threads.

  Args:
    config: Configuration to use instead of the default one.
    num_cpu: Number of threads; RCALL_NUM_CPU or the number of cores by
      default.
    make_default: Whether to make it the default session permanently.
    graph: Graph of the session; the default one if not given.
  """
  threads = num_cpu or int(os.getenv('RCALL_NUM_CPU', os.cpu_count() or 1))
  if config is None:
    config = devices.session_options()
    config.inter_op_parallelism_threads = threads
    config.intra_op_parallelism_threads = threads
  kind = tf.InteractiveSession if make_default else tf.Session
  return kind(config=config, graph=graph)


def single_threaded_session() -> tf.Session:
  """Create a session with one thread, for reproducible numbers."""
  return make_session(num_cpu=1)


def in_session(function: Callable) -> Callable:
  """Open a default session for each call; not used by this project."""

  @functools.wraps(function)
  def wrapper(*args: Any, **kwargs: Any) -> Any:
    with tf.Session():
      return function(*args, **kwargs)

  return wrapper


def initialize() -> None:
  """Initialize variables without a value; not used by this project."""
  sess = get_session()
  variables = _global_variables(sess)
  known = sess.run([tf.is_variable_initialized(x) for x in variables])
  sess.run([x.initializer for x, y in zip(variables, known) if not y])


@contextlib.contextmanager
def own_graph() -> Iterator[None]:
  """Use a new graph, with the default graph's seed, and a new session.

  The session has one thread and stays open.
  """
  seed = tf.get_default_graph().seed
  with tf.Graph().as_default():
    tf.set_random_seed(seed)
    with single_threaded_session().as_default():
      yield


def function(
  inputs: Sequence[tf.Tensor],
  outputs: Any,
  updates: Sequence[tf.Operation] | None = None,
  givens: dict[tf.Tensor, Any] | None = None,
) -> Callable[..., Any]:
  """Define a function of placeholders that runs in the default session.

  This project uses `agents.tools.callables.make_function` instead.

  Args:
    inputs: List of placeholders.
    outputs: Tensor, or list or dict of tensors.
    updates: Operations to run in each call.
    givens: Dict from placeholder to its default value.

  Returns:
    Function of one value per placeholder, by position or by the last part of
    its name, to arrays with the structure of `outputs`.
  """
  names = {x.op.name.rpartition('/')[2]: x for x in inputs}
  update = tf.group(*(updates or ()))

  def call(*args: Any, **kwargs: Any) -> Any:
    count = len(args) + len(kwargs)
    assert count <= len(inputs), f'{count} arguments for {len(inputs)} inputs'
    named = {names[key]: value for key, value in kwargs.items()}
    feed = {**(givens or {}), **dict(zip(inputs, args)), **named}
    return get_session().run((outputs, update), feed)[0]

  return call


def numel(tensor: tf.Tensor) -> int:
  """Return the number of entries of a tensor of known shape."""
  return int(np.prod(tensor.shape.as_list()))


def flatgrad(
  loss: tf.Tensor,
  var_list: Sequence[tf.Variable],
  clip_norm: float | None = None,
) -> tf.Tensor:
  """Return the gradients of a loss as one vector; not used by this project.

  Args:
    loss: Scalar.
    var_list: List of variables.
    clip_norm: Maximum norm of the gradient of each variable, None for no limit.
  """
  gradients = tf.gradients(loss, var_list, unconnected_gradients='zero')
  if clip_norm is not None:
    gradients = [tf.clip_by_norm(x, clip_norm) for x in gradients]
  return util.flatten_grads(var_list, gradients)


def split_flat(
  vector: tf.Tensor, var_list: Sequence[tf.Variable]
) -> list[tf.Tensor]:
  """Split a vector into parts with the shapes of the variables."""
  parts = tf.split(vector, [numel(x) for x in var_list])
  return [tf.reshape(part, x.shape) for part, x in zip(parts, var_list)]


class GetFlat:
  """Function that returns the variables as one vector, float32 [numbers]."""

  def __init__(
    self, var_list: Sequence[tf.Variable], sess: tf.Session | None = None
  ):
    self._sess = sess
    self._flat = util.flatten_grads(var_list, var_list)

  def __call__(self) -> np.ndarray:
    return (self._sess or get_session()).run(self._flat)


class SetFromFlat:
  """Function that assigns one vector, `dtype` [numbers], to the variables."""

  def __init__(
    self,
    var_list: Sequence[tf.Variable],
    dtype: tf.DType = tf.float32,
    sess: tf.Session | None = None,
  ):
    self._sess = sess
    size = sum(numel(x) for x in var_list)
    self._flat = tf.placeholder(dtype, [size], 'flat')
    parts = split_flat(self._flat, var_list)
    self._assign = tf.group(*[tf.assign(v, p) for v, p in zip(var_list, parts)])

  def __call__(self, vector: np.ndarray) -> None:
    (self._sess or get_session()).run(self._assign, {self._flat: vector})


def save_variables(
  save_path: str,
  variables: Sequence[tf.Variable] | None = None,
  sess: tf.Session | None = None,
) -> None:
  """Write variables to a file, completely or not at all.

  Args:
    save_path: File to write, with joblib; missing folders are created.
    variables: Variables; all global ones of the session's graph by default.
    sess: Session that holds their values.
  """
  import joblib

  sess = sess or get_session()
  variables = variables or _global_variables(sess)
  values = dict(zip([v.name for v in variables], sess.run(variables)))
  with files.atomic_path(save_path) as temporary:
    joblib.dump(values, temporary)


def load_variables(
  load_path: str,
  variables: Sequence[tf.Variable] | None = None,
  sess: tf.Session | None = None,
) -> None:
  """Assign variables from a file written by `save_variables`.

  The file is a pickle, which can run arbitrary code; only open files that you
  trust.

  Args:
    load_path: File to read, a dict from name to array or a list of arrays.
    variables: Variables; all global ones of the session's graph by default.
    sess: Session to assign in.

  Raises:
    UsageError: If the file cannot be read or has other variables.
  """
  import joblib

  sess = sess or get_session()
  variables = variables or _global_variables(sess)
  try:
    values = joblib.load(files.expand(load_path))
    if isinstance(values, list):
      values = dict(zip([v.name for v in variables], values))
    shapes = {name: np.shape(value) for name, value in values.items()}
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot load variables from {load_path!r}: {error!r}. Use a file '
      'written by --save_path.'
    ) from None
  for variable in variables:
    if shapes.get(variable.name) != tuple(variable.shape):
      raise errors.UsageError(
        f'File {load_path} has no variable {variable.name} of shape '
        f'{tuple(variable.shape.as_list())}; use one from the same environment '
        'and settings.'
      )
  for variable in variables:
    variable.load(values[variable.name], sess)


def _global_variables(sess: tf.Session) -> list[tf.Variable]:
  return sess.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
