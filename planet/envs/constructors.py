"""Tasks, and constructors that wrap their environments."""

import datetime
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agents.envs import wrappers
from agents.envs.declared import EnvSettings
from planet.envs.collect_dataset import CollectGymDataset


class Task(NamedTuple):
  """Environment to train in.

  Attributes:
    name: Name in summaries and collections.
    env_ctor: Function without arguments that returns the environment.
    max_length: Maximum number of actions per episode.
    state_components: Names of prediction targets in addition to images.
    action_repeat: Simulator steps per action.
    settings: All settings of the environment, which `env_ctor` takes under this
      name, or None if the environment declares none.
    declared: Declaration of these settings.
  """

  name: str
  env_ctor: Callable
  max_length: int
  state_components: list[str]
  action_repeat: int = 1
  settings: dict[str, Any] | None = None
  declared: type[EnvSettings] | None = None

  def with_settings(self, **more: Any) -> 'Task':
    """Return the task with other settings or arguments of its environment."""
    settings = {**(self.settings or {}), **more}
    env_ctor = functools.partial(self.env_ctor, settings=settings)
    return self._replace(env_ctor=env_ctor, settings=settings)

  def tell(self, **facts: Any) -> 'Task':
    """Return the task with facts that the environment wants to know.

    Args:
      **facts: Values of `EnvSettings.told`; others are left out.
    """
    wanted = self.declared.told if self.declared else ()
    facts = {x: y for x, y in facts.items() if x in wanted}
    return self.with_settings(**facts) if facts else self


def recording_env(
  env_ctor: Callable[[], Any],
  outdir: str | None,
  keys: Sequence[str],
  action_repeat: int,
  began: datetime.datetime | None = None,
) -> Any:
  """Create an environment that records episodes and joins observations.

  Args:
    env_ctor: Function without arguments that returns an environment.
    outdir: Folder for the episodes, or None to record none.
    keys: Observations to concatenate for the encoder.
    action_repeat: Simulator steps per action.
    began: See `CollectGymDataset`.
  """
  env = env_ctor()
  if outdir:
    env = CollectGymDataset(env, outdir, action_repeat, began)
  return wrappers.ConcatObservation(env, keys)


def unified_env(
  env_ctor: Callable[..., Any], action_spaces: Sequence[Any], **kwargs: Any
) -> Any:
  """Create the environment of one of several tasks that share a model.

  Args:
    env_ctor: Function that returns an environment.
    action_spaces: Action spaces of all tasks.
    **kwargs: Arguments of `env_ctor`.
  """
  env = wrappers.SelectObservations(env_ctor(**kwargs), ['image'])
  return wrappers.PadActions(env, action_spaces)
