"""Saver that reads checkpoints of earlier versions, too."""

import re
from collections.abc import Iterable
from typing import Any

from agents.run import errors
from agents.tools.tf1 import tf

# Where the variables of an optimiser are that belong to no other variable.
OPTIMIZER = 'optimizer'


class Saver(tf.train.Saver):
  """Saver that finds the variables of optimisers under their earlier names.

  Once, the powers of Adam were named after the place in the graph where they
  are used, which was another one with several processes.

  Args:
    variables: List of variables.
    **kwargs: Passed on to `tf.train.Saver`.
  """

  def __init__(self, variables: Iterable[tf.Variable], **kwargs: Any):
    self._variables = list(variables)
    super().__init__(self._variables, **kwargs)

  def restore(self, sess: tf.Session, save_path: str) -> None:
    """Give the variables the values that they have in a checkpoint.

    Args:
      sess: Session.
      save_path: Path without ending.

    Raises:
      UsageError: If the checkpoint is damaged or does not have these variables.
    """
    try:
      self._restore(sess, save_path)
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError) as error:
      raise errors.UsageError(
        f'The checkpoint {save_path} is damaged ({_find_cause(error)}); move '
        'it away to go on from an older one.'
      ) from None
    except (
      tf.errors.NotFoundError,
      tf.errors.InvalidArgumentError,
      ValueError,
    ) as error:
      raise errors.UsageError(
        f'The checkpoint {save_path} does not fit this version or these '
        f'settings ({_find_cause(error)}); begin a new run, or go back to '
        'those that it was written with.'
      ) from None

  def _restore(self, sess, save_path):
    stored = tf.train.NewCheckpointReader(save_path).get_variable_to_shape_map()
    own = [x.op.name for x in self._variables]
    names = [_find_stored(x, own, stored) for x in own]
    if names == own:
      super().restore(sess, save_path)
      return
    with sess.graph.as_default():
      renamed = tf.train.Saver(dict(zip(names, self._variables)))
    renamed.restore(sess, save_path)


def _find_stored(name, own, stored):
  """Name of a variable in a checkpoint; its own if there is no other."""
  place, _, last = name.rpartition('/')
  if name in stored or not re.search(f'(^|/){OPTIMIZER}$', place):
    return name
  found = [x for x in stored if x not in own and x.rpartition('/')[2] == last]
  return found[0] if len(found) == 1 else name


def _find_cause(error):
  """Part of a message of TensorFlow that names the variable or the damage."""
  match = re.search(
    r'Key \S+ not found|shapes? .* expected .*|tensor_name = .*|Read less .*'
    r'|Checksum does not match',
    str(error),
  )
  return match.group() if match else str(error).strip().splitlines()[0]
