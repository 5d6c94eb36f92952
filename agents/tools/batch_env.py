"""Batch of environments, under the name that the original gives it."""

from agents.envs.batch_env import BatchEnv as BatchEnv
