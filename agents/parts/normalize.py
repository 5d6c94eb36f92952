"""`agents.ppo.normalize`, where batch-ppo has it."""

import sys

from agents.ppo import normalize

sys.modules[__name__] = normalize
