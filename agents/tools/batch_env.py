"""Batch of environments, under its name in the original."""

from agents.envs.batch_env import BatchEnv as BatchEnv
