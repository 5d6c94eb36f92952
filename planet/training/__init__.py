"""Training: phases, models, objectives and runs on disk."""

from planet.training import running as running
from planet.training import trainer as trainer
from planet.training import utility as utility
from planet.training.define_model import define_model as define_model
from planet.training.define_summaries import (
  define_summaries as define_summaries,
)
from planet.training.running import Experiment as Experiment
from planet.training.trainer import Trainer as Trainer
