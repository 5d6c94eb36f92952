"""What the planner maximises."""

from agents.tools.tf1 import tf


def reward(state, graph, params):
  """Sum of the predicted rewards over the horizon.

  Args:
    state: Dict of tensors [batch, horizon, ...].
    graph: AttrDict with `cell` and `heads`.
    params: Unused.

  Returns:
    Float32 tensor [batch].
  """
  del params
  features = graph.cell.features_from_state(state)
  return tf.reduce_sum(graph.heads['reward'](features).mean(), 1)
