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

  alg: str = setting('her', 'algorithm; only her is available')
  env: str = setting('FetchReach-v1', 'environment id')
  env_type: str | None = setting(None, 'ignored; always robotics')
  seed: Count | None = setting(None, 'random seed')
  num_timesteps: Annotated[Finite, Ge(0)] = setting(
    1e6, 'environment steps per rank'
  )
  network: str | None = setting(
    None, 'ignored; accepted for compatibility with Baselines'
  )
  gamestate: str | None = setting(
    None, 'ignored; accepted for compatibility with Baselines'
  )
  num_env: Positive | None = setting(None, 'environments per rank (default 1)')
  reward_scale: Number = setting(1.0, 'factor applied to logged rewards')
  save_path: str | None = setting(
    None, 'file to save all variables to after training'
  )
  save_video_interval: Count = setting(
    0, 'steps between videos; 0 records none'
  )
  save_video_length: Positive = setting(200, 'length of each video in steps')
  log_path: str | None = setting(
    None, 'folder of the run, also --logdir (default a temporary folder)'
  )
  play: bool = setting(False, 'play the trained agent after training')
  play_episodes: Count | None = setting(
    None,
    'episodes to play; 0 plays until stopped (default 0 in a window, 5 in a '
    'video)',
  )
  policy_dir: str | None = setting(
    None, 'folder of saved policies (default <log_path>/policies)'
  )
  resume: bool | None = setting(
    None,
    'true requires a run in log_path, false requires that there is none '
    '(default: continue the run if there is one)',
  )
  num_cpu: Positive = setting(1, 'ranks to start with mpirun')
  wandb: str | None = setting(None, wandb_mirror.MEANING)


class Agent(schema.Settings):
  """Settings that the agent gets when it is made.

  As in the original, only `override_params` can change them.
  """

  called: ClassVar[str] = 'Setting --{}'

  max_u: Limits = setting(1.0, 'limit of actions')
  # Networks.
  layers: Count = setting(3, 'number of hidden layers')
  hidden: Positive = setting(256, 'units per hidden layer')
  network_class: Name = setting(
    'baselines_her.actor_critic:ActorCritic', 'class of actor and critic'
  )
  Q_lr: Rate = setting(0.001, 'learning rate of the critic')
  pi_lr: Rate = setting(0.001, 'learning rate of the actor')
  buffer_size: Positive = setting(
    int(1e6), 'capacity of the replay in transitions'
  )
  polyak: Fraction = setting(
    0.95, 'share of old weights kept by a target update'
  )
  action_l2: Number = setting(1.0, 'penalty on the mean squared action')
  clip_obs: Number = setting(
    200.0, 'limit of observations before normalization'
  )
  scope: str = setting('ddpg', 'variable scope')
  relative_goals: Flag = setting(
    False, 'express goals relative to achieved goals'
  )
  batch_size: Positive = setting(256, 'transitions per update')
  # Normalisation.
  norm_eps: Number = setting(0.01, 'lower bound of the standard deviation')
  norm_clip: Number = setting(5, 'limit of normalized inputs')


class Imitation(schema.Settings):
  """Settings of learning from demonstrations."""

  called: ClassVar[str] = 'Setting --{}'

  bc_loss: Switch = setting(0, '1 imitates demonstrations')
  q_filter: Switch = setting(
    0, '1 imitates only where the critic prefers the demonstration'
  )
  num_demo: Positive = setting(100, 'number of demonstrations')
  demo_batch_size: Whole = setting(128, 'demonstrated transitions per batch')
  prm_loss_weight: Number = setting(
    0.001, 'weight of the actor loss when imitating'
  )
  aux_loss_weight: Number = setting(0.0078, 'weight of the imitation loss')


class Settings(Imitation, Agent):
  """Settings of all environments: `baselines_her.config.DEFAULT_PARAMS`.

  Published runs used 19 workers of 2 episodes.
  """

  # Training.
  n_cycles: Positive = setting(50, 'cycles per epoch')
  rollout_batch_size: Positive = setting(
    2, 'environments per rank; --num_env sets it'
  )
  n_batches: Positive = setting(40, 'updates per cycle')
  n_test_rollouts: Positive = setting(10, 'test rollouts per epoch')
  test_with_polyak: Flag = setting(False, 'evaluate the target networks')
  # Exploration.
  random_eps: Fraction = setting(0.3, 'probability of a random action')
  noise_eps: Amount = setting(0.2, 'standard deviation of action noise')
  # Hindsight. Fractions make sense.
  replay_strategy: Literal[STRATEGIES] = setting(  # type: ignore[valid-type]
    'future', 'future for hindsight, none for plain replay'
  )
  replay_k: Amount = setting(4, 'hindsight goals per original goal')


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
    'future', 'future for hindsight, none for plain replay'
  )
  policy_save_interval: Whole = setting(5, 'epochs between saved policies')
  clip_return: Flag = setting(
    True, 'clip target values to the largest possible return'
  )
  demo_file: File | None = setting(None, 'file of demonstrations (pickle)')
  load_path: File | None = setting(None, 'file of initial variables (pickle)')
  override_params: dict[str, Any] | None = setting(None, 'mapping of settings')
  gamma: Fraction | None = setting(
    None, 'discount factor (default 1 - 1 / time limit)'
  )
  T: Annotated[Whole, Ge(2)] | None = setting(
    None, 'steps per episode (default that of the environment)'
  )


class CommandLine(Settings, Arguments):
  """All settings that the command line accepts."""

  lr: Rate | None = setting(None, 'sets both Q_lr and pi_lr')
