"""Batches of environments, as trainings of PPO create them."""

from agents.tools import continuous


def make(config, num_agents, seed=None, num_workers=0, images=False):
  """Batch for a network; the arguments are those of `continuous`."""
  made = continuous.constructors(config, num_agents, seed, images)
  return continuous.ScaledVectorEnv(
    made, config.max_length, num_workers, images
  )
