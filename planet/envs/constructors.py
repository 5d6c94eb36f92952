"""Tasks, and constructors that wrap their environments."""

import datetime
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agents.envs import spaces
from agents.envs.declared import EnvSettings
from agents.envs.wrappers import VectorObservations
from planet.control import wrappers
from planet.envs import gym_pixels
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

  @property
  def steps_per_action(self) -> int:
    """How often the environment is stepped per action."""
    repeats_itself = self.declared and 'action_repeat' in self.declared.told
    return 1 if repeats_itself else self.action_repeat

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


def create(env_ctor: Callable[[], Any]) -> Any:
  """Create an environment by a constructor of the user."""
  env: Any = wrappers.Wrapper(env_ctor())
  # Spaces of old gym cannot be sent to another process.
  env.observation_space = spaces.convert(env.observation_space)
  env.action_space = spaces.convert(env.action_space)
  return env


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
  return join(env, keys)


def join(env: Any, keys: Sequence[str]) -> Any:
  """Join observations to one array; images and vectors to a float32 vector.

  Args:
    env: Environment whose observations are dicts.
    keys: Observations to join, in this order.
  """
  if 'image' in keys and len(keys) > 1:
    env = VectorObservations(wrappers.SelectObservations(env, keys))
  return wrappers.ConcatObservation(env, keys)


def with_own_actions(env_ctor: functools.partial) -> functools.partial:
  """Return a constructor of a task's environment that takes its own actions.

  Args:
    env_ctor: Constructor of a task, of an environment that may take vectors in
      [-1, 1] instead.
  """
  make, args, kwargs = env_ctor.func, env_ctor.args, env_ctor.keywords
  if make is unified_env:
    return functools.partial(make, with_own_actions(args[0]), None, **kwargs)
  if make is not gym_pixels.make:
    return env_ctor
  return functools.partial(make, *args, **{**kwargs, 'own_actions': True})


def unified_env(
  env_ctor: Callable[..., Any],
  action_spaces: Sequence[Any] | None,
  **kwargs: Any,
) -> Any:
  """Create the environment of one of several tasks that share a model.

  Args:
    env_ctor: Function that returns an environment.
    action_spaces: Action spaces of all tasks, None to pad no actions.
    **kwargs: Arguments of `env_ctor`.
  """
  env = wrappers.SelectObservations(env_ctor(**kwargs), ['image'])
  return wrappers.PadActions(env, action_spaces) if action_spaces else env
