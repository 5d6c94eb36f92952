from agents.ppo.memory import EpisodeMemory as EpisodeMemory
from agents.ppo.normalize import StreamingNormalize as StreamingNormalize

from . import memory as memory
from . import normalize as normalize
