from agents.tools import nested as nested
from agents.tools.streaming_mean import StreamingMean as StreamingMean
from planet.tools.attr_dict import AttrDict as AttrDict
from planet.tools.bind import bind as bind
from planet.tools.bound_action import bound_action as bound_action
from planet.tools.copy_weights import soft_copy_weights as soft_copy_weights
from planet.tools.count_dataset import count_dataset as count_dataset
from planet.tools.count_weights import count_weights as count_weights
from planet.tools.custom_optimizer import CustomOptimizer as CustomOptimizer
from planet.tools.filter_variables import filter_variables as filter_variables
from planet.tools.gif_summary import gif_summary as gif_summary
from planet.tools.image_strip_summary import (
  image_strip_summary as image_strip_summary,
)
from planet.tools.mask import mask as mask
from planet.tools.overshooting import overshooting as overshooting
from planet.tools.reshape_as import reshape_as as reshape_as
from planet.tools.shape import shape as shape
from planet.tools.target_network import track_network as track_network

from . import numpy_episodes as numpy_episodes
from . import preprocess as preprocess
from . import schedule as schedule
from . import summary as summary
from . import unroll as unroll
