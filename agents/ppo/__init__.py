"""Proximal policy optimisation with an adaptive penalty."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'PPOAlgorithm': 'agents.ppo.algorithm:PPOAlgorithm',
    'algorithm': 'agents.ppo.algorithm',
    'memory': 'agents.ppo.memory',
    'normalize': 'agents.ppo.normalize',
    'policy': 'agents.ppo.policy',
    'utility': 'agents.ppo.utility',
  },
)
