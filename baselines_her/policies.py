"""Policy files: pickles like the original's, and plain data next to them.

Opening a pickle can run arbitrary code, so only one named by the user is
opened. `<name>.json` and `<name>.npz` contain the same policy as plain data.
"""

import os
import pickle
from collections.abc import Callable
from typing import Any

from agents.run import checkpoint, errors, files, mpi, references

BEST = 'policy_best'
_VERSION = 1
# Older policies have no space.
_INFO = 'env_name', 'action_space'


class PolicySaver:
  """Writes the policies of a training, on the first rank only.

  Args:
    policy: `DDPG` agent.
    folder: Folder, created if needed; None to write nothing.
    interval: Epochs between permanent policies; 0 for none.
    log: Function that prints a line for the user.
  """

  def __init__(
    self,
    policy: Any,
    folder: str | None,
    interval: int,
    log: Callable[[str], None],
  ):
    self._policy, self._interval, self._log = policy, interval, log
    self._folder = folder if mpi.world().Get_rank() == 0 else None

  def save(self, epoch: int, success_rate: float, best: float) -> float:
    """Write the policies due after an epoch; return the best success rate."""
    # Ties count as better, since the later policy has learned more.
    better = success_rate >= best
    if better:
      self._write(BEST, f'New best success rate: {success_rate}. Saving policy')
      self._write('policy_latest')
    if self._interval > 0 and epoch % self._interval == 0:
      self._write(f'policy_{epoch}', 'Saving periodic policy')
    return success_rate if better else best

  def save_loaded(self) -> None:
    """Write a policy that has not been trained here."""
    self._write(BEST, 'Saving the loaded policy')
    self._write('policy_latest')

  def _write(self, name: str, words: str = '') -> None:
    if self._folder:
      path = os.path.join(self._folder, f'{name}.pkl')
      if words:
        self._log(f'{words} to {path} ...')
      save(self._policy, path)


def save(policy: Any, path: str) -> None:
  """Pickle a policy, and write it as plain data next to the pickle."""
  with files.atomic_write(path, 'wb') as file_:
    pickle.dump(policy, file_)
  save_plain(policy, os.path.splitext(path)[0])


def save_plain(policy: Any, prefix: str) -> None:
  """Write a policy as `<prefix>.json` and `<prefix>.npz`."""
  state = policy.__getstate__()
  tree = {
    'version': _VERSION,
    **{x: policy.info[x] for x in _INFO if x in policy.info},
    'settings': state['settings'],
    'dims': state['dims'],
    'weights': state['tf'],
  }
  checkpoint.write_tree(prefix, tree)


def load(path: str | os.PathLike[str], trust: references.Trusted = None) -> Any:
  """Load a policy into its own graph and session.

  Args:
    path: Folder of a run, for its best policy, or folder written by `save` of a
      trained agent; or a file. A pickle can run arbitrary code.
    trust: Names that plain data may contain, in addition to those of this
      project: the network class, the environment's module. A name or a list.

  Raises:
    UsageError: If there is no policy or it cannot be read.
    NotTrusted: If it contains a name that is not trusted.
  """
  from baselines_her import tf_util

  trusted = references.parse(trust)
  path = find(path)
  try:
    with tf_util.own_graph():
      if path.endswith('.json'):
        return _load_plain(path.removesuffix('.json'), trusted)
      with open(path, 'rb') as file_:
        policy = _Unpickler(file_).load()
      if isinstance(policy, _Original):
        policy = _convert(policy.state)
      if not hasattr(policy, 'get_actions') or 'env_name' not in policy.info:
        raise ValueError(f'it holds {policy!r:.80}, which is not a policy')
      return policy
  except errors.UsageError:
    raise
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot load a policy from {path!r}: {error!r}. Give the folder of a '
      'run, or a policy file written by a training.'
    ) from None


class _Original:
  """Object of baselines; its classes and functions become such classes."""

  def __setstate__(self, state: Any) -> None:
    self.state = state


class _Unpickler(pickle.Unpickler):
  """Reads policies of baselines, too, without its code."""

  def find_class(self, module: str, name: str) -> Any:
    if module.startswith('baselines.'):
      return type(name, (_Original,), {})
    return super().find_class(module, name)


def _convert(state: dict[str, Any]) -> Any:
  """Return the agent of a policy that baselines pickled."""
  from baselines_her import ddpg, settings

  values = {k: v for k, v in state.items() if k in settings.Settings.names()}
  if values['network_class'] == 'baselines.her.actor_critic:ActorCritic':
    values['network_class'] = settings.NETWORK
  subtract = state['subtract_goals'].__name__
  if values['relative_goals'] and subtract != 'simple_goal_subtract':
    raise ValueError(f'its goals are subtracted by {subtract}')
  policy = ddpg.DDPG.__new__(ddpg.DDPG)
  policy.__setstate__(
    {
      'settings': values,
      'dims': state['input_dims'],
      'info': {'env_name': state['info']['env_name']},
      'tf': state['tf'],
    }
  )
  return policy


def find_run(path: str | os.PathLike[str]) -> str:
  """Return the folder of the run that a policy path belongs to."""
  run = files.absolute(path)
  if not os.path.isdir(run):
    run = os.path.dirname(run)
  return run.removesuffix('/policies')


def find(path: str | os.PathLike[str]) -> str:
  """Return the file of a policy, the best one of a folder; see `load`.

  Raises:
    UsageError: If there is none.
  """
  folder = files.expand(path)
  if not os.path.exists(folder):
    raise errors.UsageError(
      f'There is no policy {path}; give the folder of a run, or a policy file '
      'written by a training.'
    )
  if not os.path.isdir(folder):
    return folder
  best = os.path.join(folder, 'policies', BEST)
  own = os.path.join(folder, BEST)  # of --policy_dir, and of baselines
  for prefix in (os.path.join(folder, 'policy'), best, own):
    if os.path.exists(f'{prefix}.json'):
      return f'{prefix}.json'
  for prefix in (best, own):
    if os.path.exists(f'{prefix}.pkl'):
      raise errors.UsageError(
        f'There is only a pickle in {folder}, which can run arbitrary code; if '
        f'you trust it, name the file itself: {prefix}.pkl.'
      )
  raise errors.UsageError(
    f'There is no policy in {folder}. A training saves the first one after its '
    'first epoch; give the folder of such a run, or a policy file.'
  )


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
      'info': {x: tree[x] for x in _INFO if x in tree},
      'tf': tree['weights'],
    }
  )
  return policy
