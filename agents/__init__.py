"""Batch PPO, and the toolbox that all systems of this project share."""
