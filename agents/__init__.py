"""Batch PPO, and the toolbox that all systems of this project share."""

from agents import run
from agents.tools import lazy

run.end_silently()
lazy.export(__name__)
