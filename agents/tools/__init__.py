"""Toolbox that PPO, PlaNet and HER share; names load when they are used."""

from agents.tools import lazy

lazy.export(__name__)
