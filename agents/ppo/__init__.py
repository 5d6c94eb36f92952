"""Proximal policy optimisation with an adaptive penalty."""

from agents.tools import lazy

lazy.export(__name__)
