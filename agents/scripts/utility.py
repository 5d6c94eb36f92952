"""`agents.utility`, where batch-ppo has it."""

import sys

from agents import utility

sys.modules[__name__] = utility
