"""Hindsight experience replay: treat achieved goals as the desired ones.

Andrychowicz et al. 2017, arXiv:1707.01495, algorithm 1, strategy `future`.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from baselines_her.util import Episode

STRATEGIES = ('future', 'none')


@dataclasses.dataclass
class Draws:
  """Random choices for a batch of transitions, each array [batch].

  Attributes:
    episode: Index of the episode.
    time: Time step t of the transition in its episode.
    relabel: Whether to replace the goal in hindsight, bool.
    future: Time step after t whose achieved goal may become the goal.
  """

  episode: np.ndarray
  time: np.ndarray
  relabel: np.ndarray
  future: np.ndarray


class HindsightSampler:
  """Sample transitions from episodes, most of them with hindsight goals.

  Args:
    relabel_probability: Fraction of transitions that get a new goal.
    reward_fun: Function of `ag_2`, `g` [batch, goal size] and `info`, a dict
      of arrays [batch, size], to rewards [batch].
  """

  def __init__(
    self, relabel_probability: float, reward_fun: Callable[..., np.ndarray]
  ):
    self.relabel_probability = relabel_probability
    self.reward_fun = reward_fun

  def __call__(self, episode_batch: Episode, batch_size: int) -> Episode:
    """Draw transitions, uniformly over episodes and times.

    Args:
      episode_batch: Dict of arrays [episodes, time, size]. The keys `u`, `g`,
        `o_2`, `ag_2` and `info_*` have one entry per action; `o` and `ag`
        have one more, for the state after the last action.
      batch_size: Number of transitions.

    Returns:
      Dict of arrays [batch_size, size] with the same keys, and the rewards
      `r` [batch_size].
    """
    episodes, length = episode_batch['u'].shape[:2]
    return self.gather(episode_batch, self.draw(episodes, length, batch_size))

  def draw(self, episodes: int, length: int, batch_size: int) -> Draws:
    """Make all random choices, from NumPy's global generator.

    The order of the four draws is that of the original; recorded numbers
    depend on it.
    """
    episode = np.random.randint(0, episodes, batch_size)
    time = np.random.randint(length, size=batch_size)
    relabel = np.random.uniform(size=batch_size) < self.relabel_probability
    offset = np.random.uniform(size=batch_size) * (length - time)
    return Draws(episode, time, relabel, time + 1 + offset.astype(int))

  def gather(self, episode_batch: Episode, draws: Draws) -> Episode:
    """Collect the transitions, replace goals, and compute the rewards."""
    transitions = {
      key: values[draws.episode, draws.time]
      for key, values in episode_batch.items()
    }

    # Hindsight: the goal becomes what was achieved later in the episode.
    her = draws.relabel
    achieved_later = episode_batch['ag'][draws.episode[her], draws.future[her]]
    transitions['g'][her] = achieved_later

    info = {
      key.removeprefix('info_'): value
      for key, value in transitions.items()
      if key.startswith('info_')
    }
    transitions['r'] = self.reward_fun(
      ag_2=transitions['ag_2'], g=transitions['g'], info=info
    )
    return transitions


def make_sample_her_transitions(
  replay_strategy: str, replay_k: float, reward_fun: Callable[..., np.ndarray]
) -> HindsightSampler:
  """Return a function that samples transitions by a replay strategy.

  Args:
    replay_strategy: One of `STRATEGIES`: `future` for hindsight, `none` for
      plain replay.
    replay_k: Number of transitions with a hindsight goal per transition with
      its original goal.
    reward_fun: See `HindsightSampler`.
  """
  probability = 1 - 1 / (1 + replay_k) if replay_strategy == 'future' else 0
  return HindsightSampler(probability, reward_fun)
