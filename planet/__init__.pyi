from agents.evaluation import evaluate as evaluate
from planet.library import train as train
from planet.trained import load as load
