"""Batch PPO, and the toolbox that all systems of this project share."""

from agents.tools import lazy

lazy.export(__name__)
