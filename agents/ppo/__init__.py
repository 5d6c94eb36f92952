"""Proximal policy optimization with an adaptive KL penalty."""

from agents.tools import lazy

lazy.export(__name__)
