"""Declarations of all flags and settings.

Free of TensorFlow, so that mistakes are reported at once.
"""

import numbers
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from annotated_types import Ge, Gt

from agents.run import errors, schema, wandb_mirror
from agents.run.schema import (
  WHOLE,
  Amount,
  Count,
  Finite,
  Fraction,
  Name,
  Number,
  Positive,
  Whole,
  Words,
  setting,
)
from baselines_her.her_sampler import STRATEGIES


def _to_bool(value: Any) -> Any:
  """Take numbers as switches, as the original does."""
  is_switch = isinstance(value, numbers.Real) and value in (0, 1)
  return bool(value) if is_switch else value


Flag = Annotated[
  bool,
  pydantic.Strict(),
  pydantic.BeforeValidator(_to_bool),
  Words('True or False'),
]
Switch = Annotated[
  Literal[0, 1],
  WHOLE,
  pydantic.BeforeValidator(lambda x: int(x) if isinstance(x, bool) else x),
  Words('0 or 1'),
]
Rate = Annotated[Number, Gt(0)]
Limits = Annotated[
  Number | list[Number],
  pydantic.BeforeValidator(
    lambda x: x.tolist() if isinstance(x, np.ndarray) else x
  ),
  Words('a number or a list of numbers'),
]
_Limits = Annotated[
  float | np.ndarray,
  pydantic.BeforeValidator(lambda x: np.array(x) if isinstance(x, list) else x),
]
File = Annotated[str, pydantic.BeforeValidator(str)]


class Flags(schema.Settings):
  """Flags of `baselines_her.run`."""

  called: ClassVar[str] = 'Flag --{}'

  alg: str = setting('her', 'algorithm; there is only her')
  env: str = setting('FetchReach-v1', 'id of a goal environment')
  env_type: str | None = setting(None, 'ignored; there is only robotics')
  seed: Count | None = setting(None, 'seed of all random numbers')
  num_timesteps: Annotated[Finite, Ge(0)] = setting(
    1e6, 'environment steps of each rank'
  )
  network: str | None = setting(
    None, 'ignored; baselines passes it to all algorithms'
  )
  gamestate: str | None = setting(
    None, 'ignored; belongs to other environments'
  )
  num_env: Positive | None = setting(
    None, 'environments of each rank (default 1)'
  )
  reward_scale: Number = setting(1.0, 'factor of the rewards shown')
  save_path: str | None = setting(None, 'file for all variables at the end')
  save_video_interval: Count = setting(
    0, 'steps between two videos; 0 for none'
  )
  save_video_length: Positive = setting(200, 'steps per video')
  log_path: str | None = setting(
    None, 'folder of the run, also --logdir; by default a temporary one'
  )
  play: bool = setting(False, 'show the trained agent')
  play_episodes: Count | None = setting(
    None, 'episodes to show; 0 for no end (default 0 in a window, 5 in a file)'
  )
  policy_dir: str | None = setting(
    None, 'folder of pickled policies (default <log_path>/policies)'
  )
  resume: bool | None = setting(
    None,
    'True: there has to be a run in log_path to continue; False: there may be '
    'none; by default a run is continued if there is one',
  )
  num_cpu: Positive = setting(1, 'ranks to start with mpirun')
  wandb: str | None = setting(None, wandb_mirror.MEANING)


class Agent(schema.Settings):
  """Settings that the agent gets when it is made.

  As in the original, only `override_params` can change them.
  """

  called: ClassVar[str] = 'Setting --{}'

  max_u: Limits = setting(1.0, 'largest magnitude of actions')
  # Networks.
  layers: Count = setting(3, 'hidden layers')
  hidden: Positive = setting(256, 'units of each hidden layer')
  network_class: Name = setting(
    'baselines_her.actor_critic:ActorCritic', 'actor and critic'
  )
  Q_lr: Rate = setting(0.001, 'learning rate of the critic')
  pi_lr: Rate = setting(0.001, 'learning rate of the actor')
  buffer_size: Positive = setting(int(1e6), 'transitions of the replay')
  polyak: Fraction = setting(0.95, 'share that the target networks keep')
  action_l2: Number = setting(1.0, 'weight of the mean square of actions')
  clip_obs: Number = setting(200.0, 'largest magnitude of observations')
  scope: str = setting('ddpg', 'of all variables')
  relative_goals: Flag = setting(False, 'goals relative to what is achieved')
  batch_size: Positive = setting(256, 'transitions per update')
  # Normalisation.
  norm_eps: Number = setting(0.01, 'smallest standard deviation')
  norm_clip: Number = setting(5, 'largest magnitude of inputs')


class Imitation(schema.Settings):
  """Settings of learning from demonstrations."""

  called: ClassVar[str] = 'Setting --{}'

  bc_loss: Switch = setting(0, 'imitate demonstrations')
  q_filter: Switch = setting(0, 'only those better than the policy')
  num_demo: Positive = setting(100, 'demonstrations to use')
  demo_batch_size: Whole = setting(128, 'of them in a batch')
  prm_loss_weight: Number = setting(0.001, 'of the usual loss of the actor')
  aux_loss_weight: Number = setting(0.0078, 'of the imitation')


class Settings(Imitation, Agent):
  """Settings of all environments: `baselines_her.config.DEFAULT_PARAMS`.

  Published runs used 19 workers of 2 episodes.
  """

  # Training.
  n_cycles: Positive = setting(50, 'per epoch')
  rollout_batch_size: Positive = setting(
    2, 'per rank; the number of environments counts'
  )
  n_batches: Positive = setting(40, 'updates per cycle')
  n_test_rollouts: Positive = setting(10, 'per epoch')
  test_with_polyak: Flag = setting(False, 'test the target networks')
  # Exploration.
  random_eps: Fraction = setting(0.3, 'share of random actions')
  noise_eps: Amount = setting(0.2, 'deviation of noise')
  # Hindsight. Fractions make sense.
  replay_strategy: Literal[STRATEGIES] = setting(  # type: ignore[valid-type]
    'future', 'none for plain replay'
  )
  replay_k: Amount = setting(4, 'goals in hindsight per true one')


class AgentSettings(Imitation, Agent):
  """Settings of a `DDPG` agent, with those that follow from its task.

  Attributes:
    max_u: Largest magnitude of actions, one number or [dimu].
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    T: Time limit of episodes.
    rollout_batch_size: Number of environments of this rank.
    subtract_goals: Function of two goals to their difference.
    clip_pos_returns: Whether values above zero are cut.
    clip_return: Largest magnitude of values, None for no limit.
    gamma: Discount factor.
    network_args: Further arguments of the networks.
  """

  model_config = pydantic.ConfigDict(
    frozen=True, extra='ignore', arbitrary_types_allowed=True
  )

  max_u: _Limits = 1.0  # type: ignore[assignment]
  # Agents that do not imitate are made without demonstrations.
  num_demo: Count = 100
  input_dims: dict[str, Whole]
  T: Whole
  rollout_batch_size: Whole
  subtract_goals: Callable[[np.ndarray, np.ndarray], np.ndarray]
  clip_pos_returns: Flag
  clip_return: Annotated[
    Number, pydantic.BeforeValidator(lambda x: np.inf if x is None else x)
  ]
  gamma: Number
  network_args: dict[str, Any] = {}

  @classmethod
  def make(cls, given: dict[str, Any]) -> 'AgentSettings':
    """Return settings of the values by name; names of others are ignored.

    Raises:
      UsageError: If a value is missing or does not fit.
    """
    try:
      return cls(**given)
    except pydantic.ValidationError as error:
      first = error.errors()[0]
      name = first['loc'][0] if first['loc'] else ''
      problem = (
        'missing'
        if first['type'] == 'missing'
        else f'{first["input"]!r}. {first["msg"]}'
      )
      raise errors.UsageError(
        f'Setting {name!r} of the agent is {problem}.'
      ) from None

  @property
  def stage_shapes(self) -> dict[str, tuple[int | None, ...]]:
    """Return the shapes of a batch of transitions, in the original's order."""
    dims = {k: v for k, v in self.input_dims.items() if k[:5] != 'info_'}
    shapes: dict[str, tuple[int | None, ...]] = {
      key: (None, dims[key]) for key in sorted(dims)
    }
    shapes['o_2'], shapes['g_2'] = shapes['o'], shapes['g']
    shapes['r'] = (None,)
    return shapes


class Arguments(schema.Settings):
  """Arguments of `baselines_her.her.learn` for the command line."""

  called: ClassVar[str] = 'Setting --{}'

  replay_strategy: Literal[STRATEGIES] = setting(  # type: ignore[valid-type]
    'future', 'none for plain replay'
  )
  policy_save_interval: Whole = setting(5, 'epochs between policies')
  clip_return: Flag = setting(True, 'limit values to what discounting allows')
  demo_file: File | None = setting(None, 'demonstrations; a pickle')
  load_path: File | None = setting(None, 'variables to begin with; a pickle')
  override_params: dict[str, Any] | None = setting(
    None, 'settings as a mapping'
  )
  gamma: Fraction | None = setting(
    None, "discount factor; 1 - 1 / environment's time limit"
  )
  T: Annotated[Whole, Ge(2)] | None = setting(
    None, "time limit; the environment's"
  )


class CommandLine(Settings, Arguments):
  """All settings that the command line accepts."""

  lr: Rate | None = setting(None, 'Q_lr and pi_lr at once')
