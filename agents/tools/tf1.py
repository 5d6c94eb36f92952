"""TensorFlow in graph mode, see `agents.run.tf1`."""

from agents.run.tf1 import CallableOptions as CallableOptions
from agents.run.tf1 import convert_to_lite as convert_to_lite
from agents.run.tf1 import tf as tf
