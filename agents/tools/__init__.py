"""Toolbox that PPO, PlaNet and HER share; names load when they are used."""

from typing import TYPE_CHECKING

from agents.tools import lazy

if TYPE_CHECKING:
  from agents.tools.count_weights import count_weights as count_weights
  from agents.tools.loop import Loop as Loop
  from agents.tools.simulate import simulate as simulate

lazy.export(
  __name__,
  {
    'AttrDict': 'agents.tools.attr_dict:AttrDict',
    'BatchEnv': 'agents.envs.batch_env:BatchEnv',
    'InGraphBatchEnv': 'agents.tools.in_graph_batch_env:InGraphBatchEnv',
    'InGraphEnv': 'agents.tools.in_graph_env:InGraphEnv',
    'Loop': 'agents.tools.loop:Loop',
    'MockAlgorithm': 'agents.tools.mock_algorithm:MockAlgorithm',
    'MockEnvironment': 'agents.tools.mock_environment:MockEnvironment',
    'StreamingMean': 'agents.tools.streaming_mean:StreamingMean',
    'UsageError': 'agents.run.errors:UsageError',
    'count_weights': 'agents.tools.count_weights:count_weights',
    'layers': 'agents.tools.layers',
    'nested': 'agents.tools.nested',
    'simulate': 'agents.tools.simulate:simulate',
    'wrappers': 'agents.tools.wrappers',
  },
)
