"""`agents.configs`, where batch-ppo has it."""

import sys

from agents import configs

sys.modules[__name__] = configs
