"""Tools of PlaNet, and shared tools under the names of the original.

Functions have the names of their files: `tools.mask` is the function. Names are
imported on first use, so that environment processes do not import TensorFlow.
"""

from agents.tools import lazy

lazy.export(__name__)
