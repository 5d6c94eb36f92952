"""Tools shared by PPO, PlaNet and HER; names are imported on first use."""

from agents.tools import lazy

lazy.export(__name__)
