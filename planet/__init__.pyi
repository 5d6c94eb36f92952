from agents.evaluation import evaluate as evaluate
from planet.library import train as train
from planet.trained import load as load

from . import control as control
from . import models as models
from . import networks as networks
from . import scripts as scripts
from . import tools as tools
from . import training as training
