"""TensorFlow saver with readable errors."""

import glob
import os
import re
from typing import Any

from agents.run import checkpoint, errors, locks, released
from agents.tools.tf1 import tf

# Name scope of the variables of optimizers that belong to no other variable.
OPTIMIZER = 'optimizer'


class Saver(tf.train.Saver):
  """Saver without graph files that removes incomplete checkpoints."""

  def save(
    self, sess: tf.Session, save_path: str, *args: Any, **kwargs: Any
  ) -> str:
    """Save variables, see `tf.train.Saver`; returns the path."""
    kwargs.setdefault('write_meta_graph', False)
    locks.check(save_path)
    try:
      return super().save(sess, save_path, *args, **kwargs)
    except BaseException:
      for path in glob.glob(glob.escape(save_path) + '*.tempstate*'):
        os.remove(path)
      raise

  def continue_in(self, folder: str) -> None:
    """Count the newest checkpoints in a folder among those to keep or delete.

    Lists the folder, because the file `checkpoint` may name other ones.
    """
    paths = checkpoint.list_variables(folder)
    self.recover_last_checkpoints(paths[-self.saver_def.max_to_keep :])

  def restore(self, sess: tf.Session, save_path: str) -> None:
    """Restore the values of the variables from a checkpoint.

    Args:
      sess: Session.
      save_path: Path without file extension.

    Raises:
      UsageError: If the checkpoint is damaged, lacks these variables, or has
        been replaced by a training meanwhile.
    """
    try:
      reader = tf.train.NewCheckpointReader(save_path)
      stored = reader.get_variable_to_shape_map()
      names = released.find_names(stored)
      if names:
        self._restore_released(sess, reader, names)
      else:
        super().restore(sess, save_path)
        self._check_shapes(stored)
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError) as error:
      raise errors.UsageError(
        f'The checkpoint {save_path} is damaged ({_find_cause(error)}); move '
        'it away to continue from an older one.'
      ) from None
    except (
      tf.errors.NotFoundError,
      tf.errors.InvalidArgumentError,
      ValueError,
    ) as error:
      if not os.path.exists(save_path + '.index'):
        raise errors.UsageError(
          f'The checkpoint {save_path} is not there any more: a training that '
          'goes on keeps only the newest ones and the best. Repeat the command.'
        ) from None
      raise errors.UsageError(
        f'The checkpoint {save_path} does not fit this version or these '
        f'settings ({_find_cause(error)}). Start a new run, or use the version '
        'and settings that wrote it.'
      ) from None

  def _restore_released(self, sess, reader, names):
    """Restore a checkpoint of the original PPO, with its names by ours."""
    needed = r'(network/(?!.*/Adam)|normalize_|global_step$).*'
    for variable in self._var_list:
      name = variable.op.name
      if name in names:
        value = reader.get_tensor(names[name])
        variable.shape.assert_is_compatible_with(value.shape)
        variable.load(value.astype(variable.dtype.as_numpy_dtype), sess)
      elif re.match(needed, name):
        raise ValueError(f'Key {name} not found')

  def _check_shapes(self, stored):
    """Check those of weights, as restoring does not.

    Memories of episodes depend on the number of processes.
    """
    named = self._var_list
    if not isinstance(named, dict):
      named = {x.op.name: x for x in named}
    for name, variable in named.items():
      if variable.trainable:
        variable.shape.assert_is_compatible_with(stored[name])


def _find_cause(error):
  """Part of a message of TensorFlow that names the variable or the damage."""
  match = re.search(
    r'Key \S+ not found|shapes? .* expected .*|tensor_name = .*|Read less .*'
    r'|Checksum does not match',
    str(error),
  )
  return match.group() if match else str(error).strip().splitlines()[0]
