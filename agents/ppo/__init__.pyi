from agents.ppo.algorithm import PPOAlgorithm as PPOAlgorithm

from . import algorithm as algorithm
from . import memory as memory
from . import normalize as normalize
from . import policy as policy
from . import utility as utility
