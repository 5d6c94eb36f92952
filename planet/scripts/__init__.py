"""Command-line programs of PlaNet and their configuration."""

from agents.tools import lazy

lazy.export(__name__)
