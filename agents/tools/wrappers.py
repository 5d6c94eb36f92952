"""Wrappers of environments, under the name that the original gives them."""

from agents.envs.wrappers import *  # noqa: F403
