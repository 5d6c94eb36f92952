"""Acting in environments: planning, agents, simulation, recording."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'BatchEnv': 'agents.tools.batch_env:BatchEnv',
    'DummyEnv': 'planet.control.dummy_env:DummyEnv',
    'InGraphBatchEnv': 'agents.tools.in_graph_batch_env:InGraphBatchEnv',
    'MPCAgent': 'planet.control.mpc_agent:MPCAgent',
    'discounted_return': 'planet.control.temporal_difference:discounted_return',
    'fixed_step_return': 'planet.control.temporal_difference:fixed_step_return',
    'lambda_return': 'planet.control.temporal_difference:lambda_return',
    'planning': 'planet.control.planning',
    'random_episodes': 'planet.control.random_episodes:random_episodes',
    'simulate': 'planet.control.simulate:simulate',
    'wrappers': 'planet.control.wrappers',
  },
)
