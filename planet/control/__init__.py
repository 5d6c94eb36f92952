"""Acting in environments: planning, agents, simulation, recording.

Functions have the names of their files: `control.simulate` is the function.
What environments themselves consist of is in `planet.envs`, which needs no
TensorFlow.
"""

from agents.envs.batch_env import BatchEnv
from agents.tools.in_graph_batch_env import InGraphBatchEnv
from planet.control import planning, wrappers
from planet.control.dummy_env import DummyEnv
from planet.control.mpc_agent import MPCAgent
from planet.control.random_episodes import random_episodes
from planet.control.simulate import simulate
from planet.control.temporal_difference import (
  discounted_return,
  fixed_step_return,
  lambda_return,
)

__all__ = [
  'BatchEnv',
  'DummyEnv',
  'InGraphBatchEnv',
  'MPCAgent',
  'discounted_return',
  'fixed_step_return',
  'lambda_return',
  'planning',
  'random_episodes',
  'simulate',
  'wrappers',
]
