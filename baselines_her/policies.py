"""Files of policies: pickles as the original's, and plain data beside them.

A pickle can run any program when it is opened, so only one that the user has
named is. `<name>.json` and `<name>.npz` hold the same policy as data.
"""

import os
import pickle
from collections.abc import Callable
from typing import Any

from agents.run import checkpoint, errors, files, mpi, references
from baselines_her import logger

BEST = 'policy_best'
_VERSION = 1


class PolicySaver:
  """Writes policies of a training, from the first rank only.

  Args:
    policy: The `DDPG` agent.
    folder: Folder, created if needed; None to write nothing.
    interval: Epochs between two policies that are kept; 0 for none.
    log: Function of a line for the user.
  """

  def __init__(
    self,
    policy: Any,
    folder: str | None,
    interval: int,
    log: Callable[[str], None] = logger.info,
  ):
    self._policy, self._interval, self._log = policy, interval, log
    self._folder = folder if mpi.world().Get_rank() == 0 else None

  def save(self, epoch: int, success_rate: float, best: float) -> float:
    """Write what is due after an epoch; return the best success rate."""
    # Ties count as better, since the later policy has learned more.
    better = success_rate >= best
    if better:
      self._write(BEST, f'New best success rate: {success_rate}. Saving policy')
      self._write('policy_latest')
    if self._interval > 0 and epoch % self._interval == 0:
      self._write(f'policy_{epoch}', 'Saving periodic policy')
    return success_rate if better else best

  def _write(self, name: str, words: str = '') -> None:
    if self._folder:
      path = os.path.join(self._folder, f'{name}.pkl')
      if words:
        self._log(f'{words} to {path} ...')
      save(self._policy, path)


def save(policy: Any, path: str) -> None:
  """Pickle a policy, and write it as plain data beside."""
  with files.atomic_write(path, 'wb') as file_:
    pickle.dump(policy, file_)
  save_plain(policy, os.path.splitext(path)[0])


def save_plain(policy: Any, prefix: str) -> None:
  """Write a policy as `<prefix>.json` and `<prefix>.npz`."""
  state = policy.__getstate__()
  tree = {
    'version': _VERSION,
    'env_name': policy.info['env_name'],
    'settings': state['settings'],
    'dims': state['dims'],
    'weights': state['tf'],
  }
  checkpoint.write_tree(prefix, tree)


def load(
  path: str | os.PathLike[str], trust: references.Trust = references.NOTHING
) -> Any:
  """Load a policy, with a graph and a session of its own.

  Args:
    path: Folder of a run for its best policy, or what `save` of a trained
      agent has written; or a file, also a pickle, which can run any program.
    trust: What plain data may name, beside parts of this project: the class of
      the networks, the module of the environment.

  Raises:
    UsageError: If there is none, or it cannot be read.
    NotTrusted: If it names something that is not trusted.
  """
  from baselines_her import tf_util

  path = os.path.expanduser(path)
  if os.path.isdir(path):
    path = _find(path)
  try:
    with tf_util.own_graph():
      if path.endswith('.json'):
        return _load_plain(path.removesuffix('.json'), trust)
      with open(path, 'rb') as file_:
        policy = pickle.load(file_)
      policy.get_actions, policy.info['env_name']
      return policy
  except references.NotTrusted:
    raise
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot load a policy from {path!r}: {error!r}. Give the folder of a '
      'run, or a file of a policy that training has written.'
    ) from None


def find_run(path: str | os.PathLike[str]) -> str:
  """Return the folder of the run that a policy, by its path, belongs to."""
  run = os.path.abspath(os.path.expanduser(path))
  if not os.path.isdir(run):
    run = os.path.dirname(run)
  return run.removesuffix('/policies')


def _find(folder: str) -> str:
  """Return the path of the plain data of a folder, whether it exists or not."""
  best = os.path.join(folder, 'policies', BEST)
  for prefix in (os.path.join(folder, 'policy'), best):
    if os.path.exists(f'{prefix}.json'):
      return f'{prefix}.json'
  if os.path.exists(f'{best}.pkl'):
    raise errors.UsageError(
      f'There is only a pickle in {folder}, which can run any program; if you '
      f'trust it, give its name, {best}.pkl.'
    )
  return f'{best}.json'


def _load_plain(prefix: str, trust: references.Trust) -> Any:
  from baselines_her import ddpg

  tree = checkpoint.read_tree(prefix)
  if tree['version'] != _VERSION:
    raise ValueError(f'version {tree["version"]} instead of {_VERSION}')
  references.check_env_id(tree['env_name'], trust)
  references.resolve(tree['settings']['network_class'], trust)
  policy = ddpg.DDPG.__new__(ddpg.DDPG)
  policy.__setstate__(
    {
      'settings': tree['settings'],
      'dims': tree['dims'],
      'info': {'env_name': tree['env_name']},
      'tf': tree['weights'],
    }
  )
  return policy
