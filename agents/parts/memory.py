"""`agents.ppo.memory`, where batch-ppo has it."""

import sys

from agents.ppo import memory

sys.modules[__name__] = memory
