from agents.evaluation import evaluate as evaluate
from agents.library import train as train
from agents.run.references import Trust as Trust
from agents.trained import load as load

from . import train_ppo as train_ppo
from . import utility as utility
from . import visualize_ppo as visualize_ppo
