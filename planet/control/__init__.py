"""Act in environments: planning, agents, simulation and recording.

Functions have the names of their files: `control.simulate` is the function.
Names are imported on first use, so that wrappers and recorders of environments
do not import TensorFlow.
"""

from agents.tools import lazy

lazy.export(__name__)
