"""`agents.ppo`, where later versions of batch-ppo have it."""

from agents.ppo import utility as utility
from agents.ppo.algorithm import PPOAlgorithm

PPO = PPOAlgorithm
