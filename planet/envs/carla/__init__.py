"""Driving in CARLA, with or without a server."""

import gymnasium

gymnasium.register('Driving-v0', 'planet.envs.carla.task_env:Driving')
