"""Batch PPO, and the toolbox that all systems of this project share."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'evaluate': 'agents.evaluation:evaluate',
    'load': 'agents.trained:load',
    'Trust': 'agents.run.references:Trust',
    'train': 'agents.library:train',
    'train_ppo': 'agents.train_ppo',
    'utility': 'agents.utility',
    'visualize_ppo': 'agents.visualize_ppo',
  },
)
