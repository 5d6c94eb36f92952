"""Replay of whole episodes as a memory of the pipeline."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.memory import MemoryBase
from agents.run import errors, references
from baselines_her import config, replay_buffer


@references.nameable
class HERMemory(MemoryBase):
  """Holds a `ReplayBuffer`; its entries are episodes, not steps.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    env: Dict of the `name` and the `dims` of the environment.
    settings: Dict of settings of `config.DEFAULT_PARAMS`.

  Attributes:
    buffer: The `ReplayBuffer`.
    last_episodes: Episodes that were stored last, arrays [episodes, time,
      size].
    make_env: Maker of the environment that computes rewards.

  Raises:
    UsageError: If a setting is unknown.
  """

  def __init__(
    self,
    session: session_lib.Session,
    mode: str = 'train',
    *,
    env: dict[str, Any],
    settings: dict[str, Any],
  ):
    super().__init__(session, mode)
    params = prepare_params(env, settings)
    self.make_env = params['make_env']
    self.buffer = replay_buffer.create(
      env['dims'],
      params['T'],
      params['ddpg_params']['buffer_size'],
      params['rollout_batch_size'],
      config.configure_her(params),
    )
    self.last_episodes: Mapping[str, np.ndarray] = {}

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    """Store the episodes of `HERExplorer.update`."""
    self.last_episodes = chunk
    self.buffer.store_episode(chunk)

  @property
  def length(self) -> int:
    """Number of episodes held."""
    return self.buffer.current_size

  def state_dict(self) -> dict[str, Any]:
    return self.buffer.state_dict()

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    if len(state['u']) > self.buffer.size:
      raise errors.UsageError(
        f'The stored memory has {len(state["u"])} episodes, this one has room '
        f'for {self.buffer.size}; give it the buffer_size that it had.'
      )
    self.buffer.load_state_dict(dict(state))


def prepare_params(
  env: dict[str, Any], settings: dict[str, Any], **kwargs: Any
) -> dict[str, Any]:
  """Return all settings, with those that follow from the environment.

  Args:
    env: Dict with the `name` of the environment.
    settings: Dict of settings that differ from `config.DEFAULT_PARAMS`.
    **kwargs: Further arguments of `config.prepare_params`.

  Raises:
    UsageError: If a setting is unknown.
  """
  for name in settings:
    if name not in config.DEFAULT_PARAMS:
      raise errors.UsageError(
        f'Setting {name!r} of HER is unknown. '
        f'{errors.suggest(name, config.DEFAULT_PARAMS)}'
      )
  strategy = settings.get(
    'replay_strategy', config.DEFAULT_PARAMS['replay_strategy']
  )
  params = config.define_params(env['name'], strategy, settings)
  return config.prepare_params({**params, **kwargs})
