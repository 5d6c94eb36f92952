"""Settings that environments declare.

A gymnasium environment takes its settings as keyword arguments. If its class
declares them, as the attribute `Settings`, they are checked before anything
starts, listed by `--help`, and compared when a run is continued.
"""

import contextlib
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium

from agents.run import schema


class EnvSettings(schema.Settings):
  """Base class of declarations.

  Two names have a meaning for PlaNet: `image_size`, the height and width of
  rendered images in pixels, and `max_length`, the steps per episode.

  Attributes:
    told: Further arguments of the environment, which PlaNet fills in, out of
      `action_repeat`, if the environment repeats actions itself; `initial`,
      whether it plays the random episodes before the training; and `logdir`,
      the folder of the run.
    chosen: Settings that `begin` may choose and that a run keeps.
  """

  called: ClassVar[str] = 'Setting {!r} of the environment'
  told: ClassVar[tuple[str, ...]] = ()
  chosen: ClassVar[tuple[str, ...]] = ()

  @classmethod
  def split(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check settings together, and split them if they describe several tasks.

    Args:
      settings: All settings.

    Returns:
      Dict from the end of the name of a task, '' for a single one, to all of
      its settings.

    Raises:
      UsageError: If settings contradict each other.
    """
    return {'': dict(settings)}

  @classmethod
  def begin(
    cls, settings: Mapping[str, Any], before: Mapping[str, Any], num_envs: int
  ) -> dict[str, Any]:
    """Choose the settings of a run that is about to start.

    Args:
      settings: All settings of a task.
      before: Those of `chosen`, if the run is continued.
      num_envs: Number of environments that will exist at the same time.

    Returns:
      All settings.

    Raises:
      UsageError: If the run cannot continue with other settings, or something
        is missing.
    """
    del before, num_envs
    return dict(settings)

  @classmethod
  def summarize(
    cls, metrics: Sequence[Mapping[str, float | None]]
  ) -> dict[str, float | None]:
    """Return the metrics of several episodes together, by default the means.

    Args:
      metrics: The attribute `metrics` of the environment at the end of each
        episode; None stands for values without a meaning there.
    """
    means: dict[str, float | None] = {}
    for name in metrics[0]:
      values = [y for y in (x[name] for x in metrics) if y is not None]
      means[name] = sum(values) / len(values) if values else None
    return means


def find(env: Any) -> type[EnvSettings] | None:
  """Return the settings that an environment declares, or None.

  Imports the module of an environment, unless it belongs to gymnasium. What is
  wrong with it is reported when the environment is created.

  Args:
    env: Id of the environment; others declare no settings.
  """
  if not isinstance(env, str):
    return None
  module, _, name = env.rpartition(':')
  with contextlib.suppress(Exception, SystemExit):
    if module:
      importlib.import_module(module)
    entry: Any = gymnasium.registry[name].entry_point
    if isinstance(entry, str) and not entry.startswith('gymnasium'):
      entry = gymnasium.envs.registration.load_env_creator(entry)
    declared = getattr(entry, 'Settings', None)
    if isinstance(declared, type) and issubclass(declared, EnvSettings):
      return declared
  return None
