"""Trained policies as files that act without this project.

`write` stores a SavedModel, and TFLite and ONNX where they suit. Functions here
compute in the graph what `agents.envs.spaces` computes with NumPy.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import util
from typing import Any, NamedTuple

import numpy as np

from agents.envs import spaces
from agents.run import errors, files
from agents.tools.tf1 import convert_to_lite, tf

_OPSET = 17


class Signature(NamedTuple):
  """What a stored policy takes and returns.

  Attributes:
    inputs: Dict from name to placeholder.
    outputs: Dict from name to tensor.
  """

  inputs: dict[str, tf.Tensor]
  outputs: dict[str, tf.Tensor]


# Defines a policy in the default graph. If the argument is true, it computes
# with 32 bits, as TFLite has to.
Define = Callable[[bool], Signature]


def write(folder: str, define: Define, portable: bool) -> dict[str, str]:
  """Write a policy as a SavedModel, and in other formats.

  Args:
    folder: Folder, created if needed; it must be empty, and is after an error.
    define: Function that defines the policy.
    portable: Whether to write TFLite and ONNX as well.

  Returns:
    Dict from format, `saved_model`, `tflite` and `onnx`, to its path, or to a
    sentence that says why there is none.

  Raises:
    UsageError: If the folder is not empty.
  """
  folder = files.absolute(folder)
  if os.path.lexists(folder) and not os.path.isdir(folder):
    raise errors.UsageError(f'{folder} is a file; export to a new folder.')
  if os.path.isdir(folder) and os.listdir(folder):
    raise errors.UsageError(
      f'The folder {folder} is not empty; export to a new one.'
    )
  try:
    return _write_all(folder, define, portable)
  except BaseException:
    # The same call works once the disk has space again.
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
      remove = shutil.rmtree if entry.is_dir() else os.remove
      remove(entry.path)
    raise


def _write_all(folder, define, portable):
  _save(folder, define, False)
  written = {'saved_model': folder}
  if portable:
    for name, convert in (('tflite', _write_lite), ('onnx', _write_onnx)):
      path = os.path.join(folder, f'policy.{name}')
      problem = convert(path, define)
      if problem:
        logging.getLogger(__name__).warning(problem)
      written[name] = problem or path
  return written


def _save(folder, define, narrow):
  """Write a SavedModel without variables."""
  os.makedirs(folder, exist_ok=True)
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.saved_model.simple_save(sess, folder, *_place(define, narrow))


def _place(define, narrow):
  """Define a policy in the default graph without what it does not need."""
  with tf.Graph().as_default() as graph:
    inputs, outputs = define(narrow)
    outputs = {k: tf.identity(x) for k, x in outputs.items()}
    tensors = [*inputs.values(), *outputs.values()]
    names = [x.op.name for x in tensors]
    definition = tf.graph_util.extract_sub_graph(graph.as_graph_def(), names)
  found = tf.import_graph_def(
    definition, {}, [x.name for x in tensors], name=''
  )
  return Signature(
    dict(zip(inputs, found)), dict(zip(outputs, found[len(inputs) :]))
  )


def _write_lite(path, define):
  """Write TFLite; return a sentence if that is not possible."""
  with tempfile.TemporaryDirectory() as folder:
    model = os.path.join(folder, 'model')
    _save(model, define, True)
    try:
      content = convert_to_lite(model)
    except Exception as error:  # Of several kinds, of its compiler.
      first = str(error).strip().partition('\n')[0]
      return f'TFLite cannot compute this policy: {first:.200}'
  with files.atomic_write(path, 'wb') as file_:
    file_.write(content)
  return None


def _write_onnx(path, define):
  """Write ONNX; return a sentence if that is not possible."""
  if not util.find_spec('tf2onnx'):
    how = errors.how_to_install('onnx')
    return f'ONNX needs tf2onnx: {how}.'
  from tf2onnx import convert

  with tf.Graph().as_default() as graph:
    inputs, outputs = _place(define, True)
    names = {x.name: k for k, x in (*inputs.items(), *outputs.items())}
    if 'state' in outputs:
      # Names are unique in ONNX.
      names[outputs['state'].name] = 'next_state'
    try:
      model, _ = convert.from_graph_def(
        graph.as_graph_def(),
        input_names=[x.name for x in inputs.values()],
        output_names=[x.name for x in outputs.values()],
        opset=_OPSET,
        tensors_to_rename=names,
      )
    except Exception as error:  # Whatever it cannot convert.
      first = str(error).strip().partition('\n')[0]
      return f'tf2onnx cannot convert this policy: {first:.200}'
  with files.atomic_write(path, 'wb') as file_:
    file_.write(model.SerializeToString())
  return None


def freeze(
  sess: tf.Session, outputs: Sequence[tf.Tensor]
) -> Callable[[Mapping[tf.Tensor, tf.Tensor]], list[tf.Tensor]]:
  """Copy what computes some tensors, with weights as constants.

  Args:
    sess: Session with the weights.
    outputs: Tensors.

  Returns:
    Function that puts the copy into the default graph. Its argument is a dict
    from tensors that are fed to what replaces them there; it returns the
    outputs.
  """
  with sess.graph.as_default():
    definition = tf.graph_util.convert_variables_to_constants(
      sess, sess.graph.as_graph_def(), [x.op.name for x in outputs]
    )
  for node in definition.node:
    # Devices and colocated operations may be missing elsewhere.
    node.device = ''
    if '_class' in node.attr:
      del node.attr['_class']
    if node.op == 'CheckNumerics':
      # Exported graphs check nothing; the message is for trainings.
      node.op = 'Identity'
      del node.attr['message']
  names = [x.name for x in outputs]
  # Only what the outputs depend on is in the copy.
  known = {x.name for x in definition.node}

  def place(feeds):
    inner = {x.name: y for x, y in feeds.items() if x.op.name in known}
    return tf.import_graph_def(definition, inner, names, name='policy')

  return place


def fit(action: tf.Tensor, space: Any, narrow: bool) -> tf.Tensor:
  """Return the nearest actions of a space, see `spaces.fitting`.

  Args:
    action: Float tensor [batch, ...], or integers if the space is discrete.
    space: Box or discrete space.
    narrow: Whether to compute with 32 bits.
  """
  if spaces.is_discrete(space):
    return tf.cast(action, getattr(space, 'dtype', None) or np.int64)
  dtype, low, high = np.dtype(space.dtype), space.low, space.high
  if dtype.kind == 'f':
    most = np.finfo(dtype).max
    low, high = np.maximum(low, -most), np.minimum(high, most)
    wide = action.dtype if narrow else _wider(action.dtype, dtype)
    if narrow:
      largest = np.finfo(np.float32).max
      low, high = np.clip([low, high], -largest, largest)
    action = clip(tf.cast(action, wide), low, high)
    return tf.cast(action, dtype)
  floats = tf.float32 if narrow else tf.float64
  lowest, highest = (x.astype(floats.as_numpy_dtype) for x in (low, high))
  value = tf.round(clip(tf.cast(action, floats), lowest, highest))
  if dtype.itemsize < 4:
    # TFLite cannot select among bytes; floats hold all of these numbers.
    return tf.cast(value, dtype)
  # The ends of 64 bit integers are not numbers of 64 bit floats.
  within = (lowest < value) & (value < highest)
  whole = tf.cast(tf.where(within, value, tf.zeros_like(value)), dtype)
  ends = tf.where(value >= highest, _like(high, value), _like(low, value))
  return tf.where(within, whole, ends)


def to_box(action: tf.Tensor, low: Any, high: Any, narrow: bool) -> tf.Tensor:
  """Scale actions from [-1, 1] as in `agents.envs.spaces`, with its rounding.

  Args:
    action: Float32 tensor [batch, size].
    low: Lower bounds [size].
    high: Upper bounds [size].
    narrow: Whether to compute with 32 bits.
  """
  half = (action + 1) / 2
  dtype = half.dtype if narrow else _wider(half.dtype, low.dtype)
  width, low = (tf.constant(x, dtype) for x in (high - low, low))
  return tf.cast(half, dtype) * width + low


def clip(value: tf.Tensor, low: Any, high: Any) -> tf.Tensor:
  """Clip a tensor to arrays of bounds."""
  low, high = (tf.constant(x, value.dtype) for x in (low, high))
  return tf.minimum(tf.maximum(value, low), high)


def _like(bound, value):
  return tf.broadcast_to(tf.constant(bound), tf.shape(value))


def _wider(*dtypes):
  return tf.as_dtype(
    np.result_type(*[tf.as_dtype(x).as_numpy_dtype for x in dtypes])
  )
