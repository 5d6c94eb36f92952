"""Wrappers of environments, under their name in the original."""

from agents.envs.wrappers import *  # noqa: F403
