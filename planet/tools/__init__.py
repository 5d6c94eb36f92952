"""What only PlaNet needs, and the shared tools under their old names.

Functions have the names of their files: `tools.mask` is the function. All of
it needs TensorFlow, so processes of environments do not import this package.
"""

from agents.tools import count_weights, nested
from agents.tools.streaming_mean import StreamingMean
from planet.tools import numpy_episodes, preprocess, schedule, summary, unroll
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.tools.bound_action import bound_action
from planet.tools.copy_weights import soft_copy_weights
from planet.tools.count_dataset import count_dataset
from planet.tools.custom_optimizer import CustomOptimizer
from planet.tools.filter_variables import filter_variables
from planet.tools.gif_summary import gif_summary
from planet.tools.image_strip_summary import image_strip_summary
from planet.tools.mask import mask
from planet.tools.overshooting import overshooting
from planet.tools.reshape_as import reshape_as
from planet.tools.shape import shape
from planet.tools.target_network import track_network

__all__ = [
  'AttrDict',
  'CustomOptimizer',
  'StreamingMean',
  'bind',
  'bound_action',
  'count_dataset',
  'count_weights',
  'filter_variables',
  'gif_summary',
  'image_strip_summary',
  'mask',
  'nested',
  'numpy_episodes',
  'overshooting',
  'preprocess',
  'reshape_as',
  'schedule',
  'shape',
  'soft_copy_weights',
  'summary',
  'track_network',
  'unroll',
]
