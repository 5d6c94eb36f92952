"""Training: phases, models, objectives, and runs on disk."""

from planet.training import running, trainer, utility
from planet.training.define_model import define_model
from planet.training.define_summaries import define_summaries
from planet.training.running import Experiment
from planet.training.trainer import Trainer

__all__ = [
  'Experiment',
  'Trainer',
  'define_model',
  'define_summaries',
  'running',
  'trainer',
  'utility',
]
