"""The algorithm under its name in later versions of batch-ppo."""

from agents.tools import lazy

lazy.export(__name__)
