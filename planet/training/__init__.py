"""Training: phases, models, objectives, and runs on disk."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'Experiment': 'planet.training.running:Experiment',
    'Trainer': 'planet.training.trainer:Trainer',
    'define_model': 'planet.training.define_model:define_model',
    'define_summaries': 'planet.training.define_summaries:define_summaries',
    'running': 'planet.training.running',
    'trainer': 'planet.training.trainer',
    'utility': 'planet.training.utility',
  },
)
