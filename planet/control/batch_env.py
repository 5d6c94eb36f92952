"""Batch of environments, where PlaNet has it."""

from agents.envs.batch_env import BatchEnv as BatchEnv
