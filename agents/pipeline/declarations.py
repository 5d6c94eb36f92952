"""Declared settings of the parts of a run, as the tree of parameters has them.

Free of TensorFlow.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from agents.run import schema
from agents.run.schema import (
  Amount,
  Count,
  Fraction,
  Name,
  Positive,
  Whole,
  setting,
)

_Made = TypeVar('_Made', bound='Node')


class Node(schema.Settings):
  """Settings of a node of the tree of parameters."""

  @classmethod
  def make(
    cls: type[_Made], given: Mapping[str, Any], called: str | None = None
  ) -> _Made:
    """Return settings with the given values, and defaults for the others.

    Args:
      given: Values by name.
      called: How errors name a setting, if not like the class says.

    Raises:
      UsageError: If a name is unknown or a value does not fit; says which.
    """
    return cls.model_construct(**cls.check(given, called))


class Runner(Node):
  """Declaration of the node `runner`.

  A runner of yours whose node has more settings derives a class from this
  one, and names it as its attribute `declared`.
  """

  called: ClassVar[str] = 'Setting {!r} of the runner'

  name: Name = setting('agents.pipeline.runner.Runner', 'class of the runner')
  n_cycles: Positive = setting(1, 'cycles per epoch')
  n_epochs: Positive = setting(1, 'epochs to train')
  max_time: Amount | None = setting(None, 'hours until this process stops')
  max_iter: Count | None = setting(None, 'epochs until this process stops')
  randargs: dict[str, Any] = setting({}, '`seed` of all random numbers')
  test_act: schema.Flag = setting(True, 'whether to test')
  test_int: Positive = setting(1, 'epochs between tests')
  save_int: Positive = setting(1, 'epochs between checkpoints')
  memory_save: Literal['never', 'final', 'every'] = setting(
    'final', 'which checkpoints include the memories'
  )
  score: Name = setting(
    '/reward/test/episodic', 'statistic that selects the best epoch'
  )


class GymExplorer(Node):
  """Declaration of the arguments of a `gym_explorer.GymExplorer`.

  As counting the first episodes to finish prefers short ones, each worker has
  its share of `n_episodes`, rounded up. Without `quota`, the update ends with
  the step in which the last of that many episodes has ended, no matter whose;
  the others go on in the next chunk.

  By default, a single environment that does not render with OpenGL runs in
  the current process, and several of them in a process per core.
  """

  env: dict[str, Any] = setting({}, 'see `env_config.make`')
  num_workers: Positive = setting(1, 'number of environments')
  n_steps: Count | None = setting(None, 'steps per update')
  n_episodes: Count | None = setting(None, 'episodes per update')
  quota: schema.Flag = setting(True, 'split n_episodes evenly over the workers')
  final_action: schema.Flag = setting(False, 'also act in the half-step')
  warm_start: Count = setting(0, 'frames with random actions')
  deterministic: schema.Flag | None = setting(
    None, 'act without exploration; by default outside training'
  )
  do_reset: schema.Flag | None = setting(
    None, 'start new episodes with each update; by default outside training'
  )
  win_size: Whole | None = setting(
    None,
    'episodes per logged value, -1 for one value per epoch; by default '
    '10 in training, otherwise all episodes of an update',
  )
  seed: Whole | None = setting(
    0, 'seed of the first environment; the others count up'
  )
  processes: Count | Literal['auto'] | None = setting(
    'auto', 'worker processes; 0 to use this process, null for one per core'
  )
  record: schema.Flag | None = setting(
    None, 'record each episode as a video; by default in `eval`'
  )
  normalize_observations: schema.Flag = setting(False, 'see `normalizers`')
  normalize_rewards: schema.Flag = setting(False, 'see `normalizers`')
  clip: Amount = setting(10.0, 'largest normalised magnitude')
  gamma: Fraction = setting(0.99, 'discount for normalising rewards')
  extra_env_kwargs: dict[str, Any] | None = setting(
    None, 'further arguments for the environment'
  )

  def episodes_per_worker(self) -> int:
    """Return the share of each worker, 0 if there is none."""
    return -(-(self.n_episodes or 0) // self.num_workers) if self.quota else 0

  def find_window(self, mode: str) -> int:
    """Return the number of episodes per line of the monitor in a mode."""
    if self.win_size is not None:
      return self.win_size
    if mode == 'train':
      return 10
    return self.episodes_per_worker() * self.num_workers or -1

  def in_mode(self, mode: str) -> 'GymExplorer':
    """Return settings whose defaults are those of a mode.

    Args:
      mode: One of `train`, `test` and `eval`.
    """
    defaults = {
      'deterministic': mode != 'train',
      'do_reset': mode != 'train',
      'record': mode == 'eval',
    }
    missing = {k: v for k, v in defaults.items() if getattr(self, k) is None}
    return self.model_copy(update=missing)
