"""`agents.train_ppo`, where batch-ppo has it."""

import sys

from agents import train_ppo

if __name__ == '__main__':
  sys.exit(train_ppo.run())
sys.modules[__name__] = train_ppo
