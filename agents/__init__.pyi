from agents.evaluation import evaluate as evaluate
from agents.library import train as train
from agents.run.references import Trust as Trust
from agents.trained import load as load

from . import algorithms as algorithms
from . import configs as configs
from . import networks as networks
from . import parts as parts
from . import ppo as ppo
from . import scripts as scripts
from . import tools as tools
from . import train_ppo as train_ppo
from . import utility as utility
from . import visualize_ppo as visualize_ppo
