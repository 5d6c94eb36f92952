"""Wrappers of environments under their original names."""

from agents.envs.adapters import DeepMindWrapper as DeepMindWrapper
from agents.envs.wrappers import *  # noqa: F403
from planet.envs.collect_dataset import CollectGymDataset as CollectGymDataset
