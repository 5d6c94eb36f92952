"""Count weights; the module of PlaNet."""

from agents.tools.count_weights import count_weights as count_weights
