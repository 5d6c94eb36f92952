"""Objectives that the planner maximizes."""

from agents.tools.attr_dict import AttrDict
from agents.tools.tf1 import tf


def reward(
  state: dict[str, tf.Tensor], graph: AttrDict, params: AttrDict
) -> tf.Tensor:
  """Sum the predicted rewards over the horizon.

  Args:
    state: Dict of tensors [batch, horizon, ...].
    graph: AttrDict with `cell` and `heads`.
    params: AttrDict of all parameters of the run; unused.

  Returns:
    Float32 tensor [batch].
  """
  del params
  features = graph.cell.features_from_state(state)
  return tf.reduce_sum(graph.heads['reward'](features).mean(), 1)


# For `added.find`: other values of these names are from users.
_OURS = dict(globals())
