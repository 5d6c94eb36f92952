"""Replay of whole episodes as a memory of the pipeline."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.memory import MemoryBase
from agents.run import errors, references
from baselines_her import config, replay_buffer
from baselines_her.util import Episode


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
    check_names(session, env, settings)
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

  def get_buffer(self) -> Episode:
    """Return a dict from `o`, `ag`, `g`, `u`, `info_*` to read-only arrays.

    They are shaped [capacity, time, size], with one more time step for `o`
    and `ag` than for the others.
    """
    views = {key: value.view() for key, value in self.buffer.buffers.items()}
    for view in views.values():
      view.flags.writeable = False
    return views

  @property
  def length(self) -> int:
    """Number of episodes held."""
    return self.buffer.current_size

  @property
  def full(self) -> bool:
    return self.buffer.full

  def get_index_valid_elements(self) -> np.ndarray:
    """Return the indices of the episodes held."""
    return np.arange(self.length)

  def get_index_move_n_steps(self, index: np.ndarray, n: int) -> np.ndarray:
    """Return indices of later time steps, all within an episode."""
    moved = np.asarray(index) + n
    last = self.buffer.T - 1
    if np.any(moved > last) or np.any(moved < 0):
      raise IndexError(
        f'An episode has the time steps 0 to {last}, not {moved}.'
      )
    return moved

  def state_dict(self) -> dict[str, Any]:
    return {
      'length': self.length,
      'n_transitions_stored': self.buffer.get_transitions_stored(),
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    if state['length'] > self.buffer.size:
      raise errors.UsageError(
        f'The stored memory has {state["length"]} episodes, this one has room '
        f'for {self.buffer.size}; give it the buffer_size that it had.'
      )
    self.buffer.clear_buffer()
    self.buffer.n_transitions_stored = int(state['n_transitions_stored'])

  def get_snapshot(self) -> Episode:
    content = self.buffer.state_dict()
    content.pop('n_transitions_stored')
    return content

  def set_snapshot(self, snapshot: Mapping[str, np.ndarray]) -> None:
    stored = self.buffer.get_transitions_stored()
    self.buffer.load_state_dict({**snapshot, 'n_transitions_stored': stored})


def check_names(
  session: session_lib.Session, env: dict[str, Any], settings: dict[str, Any]
) -> None:
  """Make sure that the module of an environment and the network are trusted.

  Args:
    session: Session whose parameters may come from a file.
    env: Dict with the `name` of the environment.
    settings: Dict of settings.

  Raises:
    NotTrusted: If they are not.
  """
  references.check_env_id(env['name'], session.trust)
  if 'network_class' in settings:
    references.resolve(settings['network_class'], session.trust)


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
