"""`agents.visualize_ppo`, where batch-ppo has it."""

import sys

from agents import visualize_ppo

if __name__ == '__main__':
  sys.exit(visualize_ppo.run())
sys.modules[__name__] = visualize_ppo
