from agents.envs.batch_env import BatchEnv as BatchEnv
from agents.run.errors import UsageError as UsageError
from agents.tools.attr_dict import AttrDict as AttrDict
from agents.tools.count_weights import count_weights as count_weights
from agents.tools.in_graph_batch_env import InGraphBatchEnv as InGraphBatchEnv
from agents.tools.in_graph_env import InGraphEnv as InGraphEnv
from agents.tools.loop import Loop as Loop
from agents.tools.mock_algorithm import MockAlgorithm as MockAlgorithm
from agents.tools.mock_environment import MockEnvironment as MockEnvironment
from agents.tools.simulate import simulate as simulate
from agents.tools.streaming_mean import StreamingMean as StreamingMean

from . import layers as layers
from . import nested as nested
from . import wrappers as wrappers
