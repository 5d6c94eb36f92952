"""Episodes in the form that the pipeline passes on, and back."""

import numpy as np

_OBSERVATIONS = {'o': 'observation', 'ag': 'achieved_goal'}


def from_episode(episode, agent):
  """Chunk of an episode, whose last index is a half-step.

  Goals are repeated there, actions and infos are zero. There are no rewards,
  as those of hindsight are computed when transitions are sampled.

  Args:
    episode: Dict of arrays [workers, time, size] of
      `RolloutWorker.generate_rollouts`: `o` and `ag` of T time steps, `u`,
      `g` and `info_*` of T - 1.
    agent: Name of the agent that has acted.

  Returns:
    Flat dict of arrays [workers, T, size].
  """
  chunk = {}
  for key, value in episode.items():
    name = _name(key, agent)
    if key not in _OBSERVATIONS:
      end = value[:, -1:] if key == 'g' else np.zeros_like(value[:, :1])
      value = np.concatenate([value, end], 1)
    chunk[name] = value
  masks = np.ones((*episode['o'].shape[:2], 1), np.float32)
  masks[:, 0] = 0
  chunk['/masks'] = masks
  return chunk


def to_episode(chunk):
  """Undo `from_episode`."""
  episode = {}
  for name, value in chunk.items():
    key = _key(name)
    if key:
      episode[key] = value if key in _OBSERVATIONS else value[:, :-1]
  return episode


def _name(key, agent):
  if key in _OBSERVATIONS:
    return f'/observations/{_OBSERVATIONS[key]}'
  if key == 'g':
    return '/observations/desired_goal'
  if key == 'u':
    return f'/agents/{agent}/actions'
  return f'/infos/{key.removeprefix("info_")}'


def _key(name):
  """Key of an episode for one of a chunk; None if it has none."""
  _, kind, rest = name.split('/', 2) if name.count('/') > 1 else ('', '', '')
  if kind == 'observations':
    keys = {v: k for k, v in _OBSERVATIONS.items()}
    return {**keys, 'desired_goal': 'g'}.get(rest)
  if kind == 'agents':
    return 'u' if rest.endswith('/actions') else None
  return f'info_{rest}' if kind == 'infos' else None
