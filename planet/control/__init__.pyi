from agents.envs.batch_env import BatchEnv as BatchEnv
from planet.control.dummy_env import DummyEnv as DummyEnv
from planet.control.in_graph_batch_env import InGraphBatchEnv as InGraphBatchEnv
from planet.control.mpc_agent import MPCAgent as MPCAgent
from planet.control.random_episodes import random_episodes as random_episodes
from planet.control.simulate import simulate as simulate
from planet.control.temporal_difference import (
  discounted_return as discounted_return,
)
from planet.control.temporal_difference import (
  fixed_step_return as fixed_step_return,
)
from planet.control.temporal_difference import lambda_return as lambda_return

from . import planning as planning
from . import wrappers as wrappers
