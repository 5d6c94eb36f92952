"""Settings of the `DDPG` agent as one typed object."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AgentSettings:
  """Settings of a `DDPG` agent, under the names of the original.

  Attributes:
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    buffer_size: Capacity of the replay in transitions.
    hidden: Number of units of each hidden layer.
    layers: Number of hidden layers.
    network_class: Name of the networks as `module:class`.
    polyak: Share that the target networks keep at each update.
    batch_size: Number of transitions per gradient, demonstrations included.
    Q_lr: Learning rate of the critic.
    pi_lr: Learning rate of the actor.
    norm_eps: Smallest standard deviation when normalising.
    norm_clip: Largest magnitude of normalised inputs.
    max_u: Largest magnitude of actions, one number or [dimu].
    action_l2: Weight of the mean square of actions in the loss of the actor.
    clip_obs: Largest magnitude of observations and goals.
    scope: Scope of all variables.
    T: Time limit of episodes.
    rollout_batch_size: Number of environments of this rank.
    subtract_goals: Function of two goals to their difference.
    relative_goals: Whether goals are relative to what is achieved.
    clip_pos_returns: Whether values above zero are cut.
    clip_return: Largest magnitude of values.
    bc_loss: Whether to imitate demonstrations, 0 or 1.
    q_filter: Whether only those that are better than the policy, 0 or 1.
    num_demo: Number of demonstrations to use.
    demo_batch_size: How many transitions of a batch are demonstrated.
    prm_loss_weight: Weight of the usual loss of the actor with `bc_loss`.
    aux_loss_weight: Weight of the imitation loss.
    gamma: Discount factor.
  """

  input_dims: dict[str, int]
  buffer_size: int
  hidden: int
  layers: int
  network_class: str
  polyak: float
  batch_size: int
  Q_lr: float
  pi_lr: float
  norm_eps: float
  norm_clip: float
  max_u: float | np.ndarray
  action_l2: float
  clip_obs: float
  scope: str
  T: int
  rollout_batch_size: int
  subtract_goals: Callable[[np.ndarray, np.ndarray], np.ndarray]
  relative_goals: bool
  clip_pos_returns: bool
  clip_return: float
  bc_loss: int
  q_filter: int
  num_demo: int
  demo_batch_size: int
  prm_loss_weight: float
  aux_loss_weight: float
  gamma: float

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
