"""Episodes of random actions."""

from agents.tools import stopping
from planet.control.collect_dataset import CollectGymDataset


def random_episodes(env_ctor, num_episodes, outdir=None):
  """Play episodes of uniformly random actions.

  Args:
    env_ctor: Function without arguments that returns an environment with
      dictionaries as observations.
    num_episodes: Number of episodes.
    outdir: Folder to write them to; None only returns them.

  Returns:
    List of episodes, each a dict of arrays [time, ...].

  Raises:
    StopRequested: If the user asks to stop; whole episodes are kept on disk.
  """
  env = env_ctor()
  try:
    env = CollectGymDataset(env, outdir)
    episodes = []
    for _ in range(num_episodes):
      env.reset()
      done = False
      while not done:
        stopping.check()
        _, _, done, info = env.step(env.action_space.sample())
      episodes.append(info['episode'])
    return episodes
  finally:
    try:
      close = env.close
    except AttributeError:
      close = None
    if close:
      close()
