"""Batch of environments in the graph, where PlaNet has it."""

from typing import Any

from agents.tools import in_graph_batch_env


class InGraphBatchEnv(in_graph_batch_env.InGraphBatchEnv):
  """Shared `InGraphBatchEnv` whose done flags are False at first.

  The class of PPO begins with True, so that its first step resets.
  """

  def __init__(self, batch_env: Any, initial_done: bool = False):
    super().__init__(batch_env, initial_done)
