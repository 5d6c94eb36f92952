"""Modules of `agents` under their names in batch-ppo."""

from agents.tools import lazy

lazy.export(__name__)
