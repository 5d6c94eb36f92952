"""Batch PPO, and the tools that all systems of this project share."""

from agents import run
from agents.tools import lazy

run.open_streams()
run.end_silently()
lazy.export(__name__)
