"""Wrapped environments, built within their own process."""

from agents.tools import wrappers
from planet.control.collect_dataset import CollectGymDataset


def recording_env(env_ctor, outdir, keys):
  """Environment that keeps its episodes and shows the encoder's observation.

  Args:
    env_ctor: Function without arguments that returns an environment.
    outdir: Folder for the episodes, or None.
    keys: Observations to concatenate.
  """
  env = CollectGymDataset(env_ctor(), outdir)
  return wrappers.ConcatObservation(env, keys)


def unified_env(env_ctor, action_spaces):
  """Environment of one of several tasks that share a model.

  Args:
    env_ctor: Function without arguments that returns an environment.
    action_spaces: Action spaces of all tasks.
  """
  env = wrappers.SelectObservations(env_ctor(), ['image'])
  return wrappers.PadActions(env, action_spaces)
