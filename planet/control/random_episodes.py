"""Play episodes with random actions."""

import datetime
from collections.abc import Callable

import numpy as np

from agents.envs import guard
from agents.run import stopping
from planet.envs.collect_dataset import CollectGymDataset


def random_episodes(
  env_ctor: Callable,
  num_episodes: int,
  outdir: str | None = None,
  action_repeat: int | None = None,
  began: datetime.datetime | None = None,
  seed: int | None = None,
) -> list[dict[str, np.ndarray]]:
  """Play episodes with uniformly random actions.

  Args:
    env_ctor: Function without arguments that returns an environment.
    num_episodes: Number of episodes.
    outdir: Folder to write episodes to; None to return them.
    action_repeat: Simulator steps per action, stored with each episode.
    began: See `CollectGymDataset`.
    seed: See `CollectGymDataset`; seeds nothing here.

  Returns:
    List of episodes, each a dict of arrays [time, ...]; empty with `outdir`.

  Raises:
    StopRequested: If the user asks to stop; finished episodes stay on disk.
  """
  env = CollectGymDataset(env_ctor(), outdir, action_repeat, began, seed)
  episodes: list[dict[str, np.ndarray]] = []
  count = 0
  try:
    while count < num_episodes:
      env.reset()
      done = False
      while not done:
        stopping.check()
        _, _, done, info = env.step(env.action_space.sample())
      # Replay episodes with a failed step.
      if not guard.has_failed(info):
        count += 1
        if outdir is None:
          episodes.append(info['episode'])
    return episodes
  finally:
    env.close()
