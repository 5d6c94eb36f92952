"""Interfaces of the parts of a run: agents, explorers, memories."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from agents.run import errors, schema

Sampler = Callable[[Mapping[str, Any]], Any]


class AgentBase:
  """Chooses actions and learns from memories.

  It has a policy, which acts and learns, and a sampler, which draws training
  data from memories. The parameter tree names both; the runner passes them as
  the arguments `policy`, a function that creates the policy, and `sampler`.

  Random numbers come from NumPy's global generator, which the runner seeds
  and saves in checkpoints.

  Args:
    session: Session that the agent runs in.
    memory: Dict from mode to memory, usually only `train`.
    name: Name in the parameter tree, the `<a>` of `/agents/<a>/actions`, and
      the scope of the variables.
    action_space: Plain description of the actions, see `describe` of
      `agents.envs.probe`; required by `random_action_generator`.
    sampler: Function from the memories to a batch, or to None if there is too
      little data; required by `step`.
    **params: Further arguments of a subclass.

  Attributes:
    params: Those further arguments.
    hidden_size: Size of the recurrent state.
  """

  hidden_size = 1

  def __init__(
    self,
    session: Any,
    memory: Mapping[str, Any],
    name: str = 'agent',
    action_space: Mapping[str, Any] | None = None,
    sampler: Sampler | None = None,
    **params: Any,
  ) -> None:
    self.session = session
    self.params = params
    self.memory = memory
    self.name = name
    self.action_space = action_space
    self.sampler = sampler

  def action_generator(
    self,
    observations: Mapping[str, np.ndarray],
    hidden_state: np.ndarray,
    masks: np.ndarray,
    deterministic: bool = False,
  ) -> dict[str, Any]:
    """Choose actions.

    Args:
      observations: Dict from path to array [workers, ...]; the only path is
        `agent` unless observations are dictionaries.
      hidden_state: Float32 array [workers, hidden size].
      masks: Float32 array [workers, 1], 0 where an episode starts.
      deterministic: Whether to act without exploration.

    Returns:
      Dict of `actions` [workers, ...], the next `hidden_state`, and
      `artifacts`, a dict of further arrays [workers, ...] to store.
    """
    raise NotImplementedError

  def find_observation(
    self,
    observations: Mapping[str, np.ndarray],
    dim: Sequence[int],
    key: str = 'agent',
  ) -> np.ndarray:
    """Return an observation that the agent learns from, [workers, ...].

    Args:
      observations: Dict from path to array [workers, ...].
      dim: Shape in the description of the observations.
      key: Path of the observation.

    Raises:
      UsageError: If there is none, or it has another shape.
    """
    observed = errors.find('Observation', key, observations)
    shape = np.shape(observed)[1:]
    if shape != tuple(dim):
      raise errors.UsageError(
        f'Observations {key!r} have the shape {shape}, but the dim of the '
        f'observation_space of agent {self.name!r} is {list(dim)}; make them '
        'equal.'
      )
    return observed

  def random_action_generator(
    self, envs: Any, num_workers: int
  ) -> dict[str, Any]:
    """Choose uniform random actions; returns the same as `action_generator`.

    Args:
      envs: Environments of the explorer, not used here.
      num_workers: Number of workers.

    Raises:
      UsageError: If the action space is missing or not bounded.
    """
    space = self.action_space
    if not space:
      raise errors.UsageError(
        f'Agent {self.name!r} cannot act at random without the argument '
        'action_space; set warm_start to 0.'
      )
    if count := count_choices(space, f'actions of agent {self.name!r}'):
      actions = np.random.randint(count, size=num_workers)
      actions += space.get('start', 0)
    else:
      low, high = find_limits(space, f'random actions of agent {self.name!r}')
      shape = (num_workers, *space['dim'])
      actions = np.random.uniform(low, high, shape).astype(np.float32)
    hidden = self.reset_hidden_state(num_workers)
    return {'actions': actions, 'hidden_state': hidden, 'artifacts': {}}

  def reset_hidden_state(self, num_workers: int) -> np.ndarray:
    """Return the initial states of workers, [workers, hidden size]."""
    return np.zeros((num_workers, self.hidden_size), np.float32)

  def remember(
    self, observations: Mapping[str, np.ndarray], rewards: np.ndarray
  ) -> None:
    """Process a step; explorers call it after each training step.

    The agent learns from the memory; override this only for running statistics
    that the next action needs.

    Args:
      observations: Dict from path to array [workers, ...] before the action.
      rewards: Float32 array [workers].
    """

  def step(self) -> dict[str, float]:
    """Run one optimization step.

    Returns:
      Dict from name to number, empty if there is too little data yet.
    """
    if not self.sampler:
      raise errors.UsageError(
        f'Agent {self.name!r} has no sampler; add the node sampler to it.'
      )
    with self.session.profiler('sample'):
      batch = self.sampler(self.memory)
    if batch is None:
      return {}
    with self.session.profiler('graph'):
      return self.learn(batch)

  def learn(self, batch: Any) -> dict[str, float]:
    """Run one optimization step on a batch from the sampler."""
    raise NotImplementedError

  def update(self) -> None:
    """Learn, once per cycle, and log to the session's monitor and writer."""
    raise NotImplementedError

  def epoch_done(self) -> None:
    """Finish an epoch, after the test and before the checkpoint."""

  def state_dict(self) -> dict[str, Any]:
    """Return the state outside of TensorFlow variables: plain data, arrays."""
    return {}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict`."""


class ExplorerBase:
  """Lets agents act in environments and returns the collected data.

  Args:
    session: Session that the explorer runs in.
    agents: Dict from name to agent.
    mode: One of `train`, `test` and `eval`.
    win_size: Number of episodes that the monitor averages per line; -1 for all
      episodes of an epoch.
    **params: Further arguments of a subclass.

  Attributes:
    params: Those further arguments.
    scores: Names of the statistics of its episodes; `{}` stands for the mode.
    timesteps: Number of frames, i.e. steps of all workers.
    n_episode: Number of finished episodes.
  """

  scores: ClassVar[tuple[str, ...]] = ('/reward/{}/episodic',)

  def __init__(
    self,
    session: Any,
    agents: Mapping[str, Any],
    mode: str = 'train',
    win_size: int = 10,
    **params: Any,
  ) -> None:
    self.session = session
    self.params = params
    self.agents = agents
    self.mode = mode
    self.win_size = win_size
    self.timesteps = 0
    self.n_episode = 0

  def update(self) -> dict[str, np.ndarray]:
    """Explore and return the collected data.

    Returns:
      Flat dict from keys such as `/observations/agent`, `/masks`, `/rewards`
      and `/agents/<a>/actions` to arrays [workers, T + 1, ...]. The last
      index is a half-step with observations only.
    """
    raise NotImplementedError

  def reset(self) -> None:
    """Start new episodes."""

  def close(self) -> None:
    """Close the environments."""

  def export_normalizers(self) -> dict[str, Any]:
    """Return the normalization statistics for another explorer."""
    return {}

  def import_normalizers(self, state: Mapping[str, Any]) -> None:
    """Load the result of `export_normalizers` of another explorer."""

  def state_dict(self) -> dict[str, Any]:
    """Return a nested dict of plain data, bytes and arrays for a checkpoint."""
    return {'timesteps': self.timesteps, 'n_episode': self.n_episode}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict`."""
    self.timesteps = int(state['timesteps'])
    self.n_episode = int(state['n_episode'])
    self._set_meta()

  def _report_episode(self, value):
    """Log the return of a finished episode."""
    self.n_episode += 1
    self._set_meta()
    name = f'/reward/{self.mode}/episodic'
    self.session.monitor(name, value, self.win_size)
    self.session.writer.add_scalar(f'reward/{self.mode}', value, self.n_episode)

  def _set_meta(self):
    if self.mode == 'train':
      ranks, monitor = self.session.comm.Get_size(), self.session.monitor
      monitor.set_meta('frame', ranks * self.timesteps)
      monitor.set_meta('episode', ranks * self.n_episode)


class MemoryBase:
  """Stores the data that explorers return.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    **params: Further arguments of a subclass.

  Attributes:
    params: Those further arguments.
  """

  def __init__(self, session: Any, mode: str = 'train', **params: Any) -> None:
    self.session = session
    self.params = params
    self.mode = mode

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    """Append a chunk, a dict from key to array [workers, T + 1, ...].

    Raises:
      UsageError: If its shapes do not match the stored data.
    """
    raise NotImplementedError

  def state_dict(self) -> dict[str, Any]:
    """Return the contents: nested dicts of plain data and arrays."""
    raise NotImplementedError

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Replace the contents with the result of `state_dict`.

    Raises:
      UsageError: If they do not fit.
    """
    raise NotImplementedError


def pick(batch: Mapping[str, Any], *keys: str) -> list[Any]:
  """Return entries of a batch.

  Raises:
    UsageError: If the memory, or the sampler, leaves one out.
  """
  return [errors.find('Key of the batch', x, batch) for x in keys]


def check_processes(comm: Any, name: str, instead: str) -> None:
  """Refuse several MPI ranks for agents that learn in one process.

  Args:
    comm: MPI communicator.
    name: Name of the agent.
    instead: What the user can do instead.

  Raises:
    UsageError: If there is more than one.
  """
  if comm.Get_size() > 1:
    raise errors.UsageError(
      f'Agent {name!r} learns in one process, but there are {comm.Get_size()}; '
      f'start it without mpirun, and {instead} instead.'
    )


def find_shape(
  space: Mapping[str, Any] | None, what: str, vector: bool = True
) -> list[int]:
  """Return the shape of a box of real numbers.

  Args:
    space: Plain description, None if the space does not exist.
    what: Description of the space for messages.
    vector: Whether it must have exactly one dimension.

  Raises:
    UsageError: If the space has another type.
  """
  found = schema.convert(dict | None, space, f'The space of the {what}') or {}
  if found.get('typ') == 'Box':
    called = f'The shape dim of the {what}'
    dim = schema.convert(list[schema.Size], found.get('dim'), called)
    if not vector or len(dim) == 1:
      return dim
  raise errors.UsageError(
    f'The {what} are {space}, but must be '
    f'{"vectors" if vector else "boxes"} of real numbers; choose an '
    'environment with continuous ones.'
  )


def count_choices(space: Any, what: str) -> int | None:
  """Return the number of choices of a discrete space, None for another.

  Args:
    space: Plain description.
    what: Description of the space for messages.

  Raises:
    UsageError: If the space does not say it.
  """
  found = schema.convert(dict | None, space, f'The space of the {what}') or {}
  if found.get('typ') != 'Discrete':
    return None
  called = f'The number dim of the {what}'
  return schema.convert(schema.Size, found.get('dim'), called)


def find_limits(space: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
  """Return the lower and upper bounds of a box, float32.

  Args:
    space: Plain description of a box.
    what: Description of the space for messages.

  Raises:
    UsageError: If a bound is not finite.
  """
  try:
    low, high = (
      np.broadcast_to(np.asarray(x, np.float32), space['dim'])
      for x in space['lim']
    )
  except (KeyError, TypeError, ValueError):
    raise errors.UsageError(
      f'The {what} are {space}; give as lim the lower and upper bounds, lists '
      'of the shape dim.'
    ) from None
  if not (np.isfinite(low).all() and np.isfinite(high).all()):
    raise errors.UsageError(
      f'The {what} range from {low} to {high}, but must have finite bounds. '
      'Choose another environment, or set warm_start to 0 if only that fails.'
    )
  return low, high
