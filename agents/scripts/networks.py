"""`agents.networks`, where batch-ppo has it."""

import sys

from agents import networks

sys.modules[__name__] = networks
