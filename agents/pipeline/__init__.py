"""Pipeline of sessions, runners, explorers, memories and agents."""

from agents.tools import lazy

lazy.export(__name__)
