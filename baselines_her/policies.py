"""Files of policies: pickles as the original's, and plain data beside them.

A pickle can run any program when it is opened, so only one that the user has
named is. `<name>.json` and `<name>.npz` hold the same policy as data.
"""

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

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
    is_root = mpi.world().Get_rank() == 0
    self._policy = policy
    self._folder = os.path.expanduser(folder) if folder and is_root else None
    self._interval = interval
    self._log = log

  def save(self, epoch: int, success_rate: float, best: float) -> float:
    """Write what is due after an epoch; return the best success rate."""
    # Ties count as better, since the later policy has learned more.
    better = success_rate >= best
    due = self._interval > 0 and epoch % self._interval == 0
    if self._folder and better:
      path = os.path.join(self._folder, f'{BEST}.pkl')
      self._log(
        f'New best success rate: {success_rate}. Saving policy to {path} ...'
      )
      save(self._policy, path)
      save(self._policy, os.path.join(self._folder, 'policy_latest.pkl'))
    if self._folder and due:
      path = os.path.join(self._folder, f'policy_{epoch}.pkl')
      self._log(f'Saving periodic policy to {path} ...')
      save(self._policy, path)
    return success_rate if better else best


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
    'weights': [np.asarray(x) for x in state['tf']],
  }
  checkpoint.write_tree(prefix, tree)


def load(path: str, trust: references.Trust = references.NOTHING) -> Any:
  """Load a policy, in the default graph and session.

  Args:
    path: Folder of a run for its best policy, or what `save` of a trained
      agent has written; or a file, also a pickle, which can run any program.
    trust: What plain data may name, beside parts of this project: the class of
      the networks, the module of the environment.

  Raises:
    UsageError: If there is none, or it cannot be read.
    NotTrusted: If it names something that is not trusted.
  """
  path = os.path.expanduser(path)
  if os.path.isdir(path):
    best = os.path.join(path, 'policies', BEST)
    found = [
      x
      for x in (os.path.join(path, 'policy'), best)
      if os.path.exists(f'{x}.json')
    ]
    if not found and os.path.exists(f'{best}.pkl'):
      raise errors.UsageError(
        f'There is only a pickle in {path}, which can run any program; if you '
        f'trust it, give its name, {best}.pkl.'
      )
    path = f'{(found or [best])[0]}.json'
  try:
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
