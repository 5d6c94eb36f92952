from agents.pipeline.base import AgentBase as AgentBase
from agents.pipeline.base import ExplorerBase as ExplorerBase
from agents.pipeline.base import MemoryBase as MemoryBase
from agents.pipeline.runner import Runner as Runner
from agents.pipeline.session import Session as Session
