"""Deep deterministic policy gradients with goals, Lillicrap et al. 2016."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from agents.run import errors
from agents.tools.tf1 import tf
from baselines_her import (
  demonstrations,
  mpi,
  replay_buffer,
  tf_util,
  training_graph,
  util,
)
from baselines_her.settings import Settings
from baselines_her.util import Episode, clip

dims_to_shapes = replay_buffer.dims_to_shapes


class DDPG:
  """Agent with actor, critic, target networks, normalizers and replay.

  Also accepts the original's call: all settings as keyword arguments, and the
  sizes as `input_dims`.

  Args:
    settings: Complete `Settings`, see `Settings.complete`.
    dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    sample_transitions: Function that samples from episodes; see
      `baselines_her.her_sampler`. None for agents that only act.
    buffer: Replay to use instead of a new one, including its sampling function.
    subtract_goals: Function of two goals to their difference.
    reuse: Whether the variables of the scope already exist.
    info: Dict to store with a saved policy, such as `env_name`.
    **kwargs: Settings; other arguments of the original have no effect.

  Attributes:
    settings: The `Settings`, which are also attributes of the agent, as all of
      the other arguments are.
    max_u, clip_return: Limits of actions and values, as numbers.
    sess: Session of the networks.
    main, target: Trained networks and target networks.
    o_stats, g_stats: Normalizers.
    buffer: Replay of this rank.
    demo_buffer: Replay of the demonstrations, None without `bc_loss`.

  Raises:
    UsageError: If the value of a setting is not allowed.
  """

  T: int
  gamma: float
  info: dict[str, Any]

  def __init__(
    self,
    settings: Settings | None = None,
    dims: dict[str, int] | None = None,
    *,
    sample_transitions: replay_buffer.Sampler | None = None,
    buffer: replay_buffer.ReplayBuffer | None = None,
    subtract_goals: Callable[..., np.ndarray] = util.simple_goal_subtract,
    reuse: bool = False,
    info: dict[str, Any] | None = None,
    **kwargs: Any,
  ):
    if settings is None:
      dims = kwargs.pop('input_dims')
      names = [x for x in Settings.names() if x in kwargs]
      settings = Settings.read({x: kwargs.pop(x) for x in names})
    assert dims and settings.T and settings.gamma is not None
    self.settings, self.input_dims, self.info = settings, dict(dims), info or {}
    self.max_u, self.clip_return = settings.action_limit, settings.return_limit
    self.dimo, self.dimg, self.dimu = (dims[key] for key in 'ogu')
    self.subtract_goals, self.reuse = subtract_goals, reuse
    self.sample_transitions = sample_transitions
    vars(self).update(kwargs)
    self._updates = 0
    scope = f'{settings.scope}/'
    taken = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope)
    place = tf_util.own_graph if taken and not reuse else contextlib.nullcontext
    with place():
      self.sess = tf_util.get_session()
      with tf.variable_scope(settings.scope, reuse=reuse or None):
        graph = training_graph.TrainingGraph(settings, dims, self.sess)
    self._graph = graph
    self._act = [graph.define_acting(x) for x in (graph.main, graph.target)]
    self._init_target_net = graph.init_target
    self.stage_shapes = graph.stage_shapes
    self.main, self.target = graph.main, graph.target
    self.o_stats, self.g_stats = graph.o_stats, graph.g_stats
    self.Q_adam, self.pi_adam = graph.Q_adam, graph.pi_adam
    self.Q_loss_tf, self.pi_loss_tf = graph.losses.critic, graph.losses.actor
    self.cloning_loss_tf = graph.losses.cloning
    self.Q_grad_tf, self.pi_grad_tf = graph.Q_grad, graph.pi_grad
    replay = settings, self.input_dims, sample_transitions
    self.buffer = buffer or replay_buffer.create(*replay)
    self.demo_buffer = (
      replay_buffer.create(*replay) if settings.bc_loss else None
    )

  def __getattr__(self, name: str) -> Any:
    """Return a setting; the original stores all of them in the agent."""
    if name in Settings.names():
      return getattr(self.settings, name)
    raise AttributeError(f'{type(self).__name__} has no attribute {name!r}.')

  def get_actions(
    self,
    o: np.ndarray,
    ag: np.ndarray,
    g: np.ndarray,
    noise_eps: float = 0.0,
    random_eps: float = 0.0,
    use_target_net: bool = False,
    compute_Q: bool = False,
  ) -> Any:
    """Choose actions, with two kinds of exploration noise.

    Args:
      o: Observations [batch, dimo].
      ag: Achieved goals [batch, dimg].
      g: Goals [batch, dimg].
      noise_eps: Standard deviation of the noise in units of `max_u`.
      random_eps: Probability of replacing an action with a uniform one.
      use_target_net: Whether to use the target network.
      compute_Q: Whether to also return the values of the policy's actions.

    Returns:
      Actions float32 [batch, dimu], or [dimu] for a batch of one; with
      `compute_Q` a list of the actions and the values [batch, 1].
    """
    o, g = self._preprocess_og(o, ag, g)
    o, g = o.reshape(-1, self.dimo), g.reshape(-1, self.dimg)
    values = self._act[use_target_net](o, g, compute_Q)
    u, max_u = values[0], self.max_u
    # Random numbers are drawn in this order even if they have no effect, so
    # that the results do not depend on the settings.
    u += noise_eps * max_u * np.random.randn(*u.shape)
    u = clip(u, max_u)
    replaced = np.random.binomial(1, random_eps, (u.shape[0], 1))
    random = np.random.uniform(-max_u, max_u, u.shape)
    u += replaced * (random - u)
    if u.shape[0] == 1:
      u = u[0]
    return [u, values[1]] if compute_Q else u

  @contextlib.contextmanager
  def fixed_weights(self, use_target_net: bool = False) -> Iterator[None]:
    """Act faster while no weights change, for example during an episode.

    Args:
      use_target_net: Whether the target network acts.
    """
    net = self.target if use_target_net else self.main
    freeze = getattr(net, 'freeze', lambda sess: None)
    in_graph = self._act[use_target_net]
    self._act[use_target_net] = freeze(self.sess) or in_graph
    try:
      yield
    finally:
      self._act[use_target_net] = in_graph

  def step(
    self, obs: dict[str, np.ndarray]
  ) -> tuple[np.ndarray, None, None, None]:
    """Choose the best actions, with the interface of baselines' models.

    Args:
      obs: Dict of observations of goal environments.

    Returns:
      Tuple of the actions and three None values.
    """
    actions = self.get_actions(
      obs['observation'], obs['achieved_goal'], obs['desired_goal']
    )
    return actions, None, None, None

  def init_demo_buffer(
    self, demoDataFile: str, update_stats: bool = True
  ) -> None:
    """Fill the replay of demonstrations from a file.

    Args:
      demoDataFile: Path; see `baselines_her.demonstrations`.
      update_stats: Whether to update the normalizers with them.

    Raises:
      UsageError: If the file is unreadable or has too few demonstrations.
    """
    assert self.demo_buffer is not None, 'demonstrations need bc_loss = 1'
    count, dims = self.settings.num_demo, self.input_dims
    for episode in demonstrations.load(demoDataFile, count, self.T, dims):
      self.demo_buffer.store_episode(episode)
      if update_stats:
        self.update_stats(episode)

  def store_episode(
    self, episode_batch: Episode, update_stats: bool = True
  ) -> None:
    """Store episodes in the replay.

    Args:
      episode_batch: Dict of arrays [episodes, time, size], `o` and `ag` with
        one more time step than the others.
      update_stats: Whether to update the normalizers with them.
    """
    self.buffer.store_episode(episode_batch)
    if update_stats:
      self.update_stats(episode_batch)

  def update_stats(self, episode_batch: Mapping[str, np.ndarray]) -> None:
    """Update the normalizers with hindsight transitions of episodes."""
    count = util.transitions_in_episode_batch(episode_batch)
    transitions = self.buffer.draw(episode_batch, count)
    o, g = self._preprocess_og(*(transitions[key] for key in ('o', 'ag', 'g')))
    self.o_stats.update(o)
    self.g_stats.update(g)
    self.o_stats.recompute_stats()
    self.g_stats.recompute_stats()

  def sample_batch(self) -> list[np.ndarray]:
    """Return the arrays of a batch in the order of the staging area."""
    size = self.settings.batch_size
    if self.demo_buffer is not None:
      demo_size = self.settings.demo_batch_size
      own = self.buffer.sample(size - demo_size)
      demos = self.demo_buffer.sample(demo_size)
      batch = {k: np.concatenate([v, demos[k]]) for k, v in own.items()}
    else:
      batch = self.buffer.sample(size)
    o, o_2, g = batch['o'], batch['o_2'], batch['g']
    batch['o'], batch['g'] = self._preprocess_og(o, batch['ag'], g)
    batch['o_2'], batch['g_2'] = self._preprocess_og(o_2, batch['ag_2'], g)
    return [batch[key] for key in self.stage_shapes]

  def stage_batch(self, batch: list[np.ndarray] | None = None) -> None:
    """Pass a batch to the graph, which uses it in the next run."""
    if batch is None:
      batch = self.sample_batch()
    self._graph.stage(*batch)

  def train(self, stage: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Update critic and actor once.

    Args:
      stage: Whether to sample a batch; otherwise a staged one is used.

    Returns:
      Tuple of the loss of the critic and the values [batch, 1] of the
      policy's actions, both from before the update.
    """
    self._check_synced(1)
    if stage:
      self.stage_batch()
    loss, Q_pi = self._graph.train()
    return loss, Q_pi

  def train_many(self, count: int) -> np.ndarray:
    """Run the equivalent of several `train` calls in one run of the graph.

    Args:
      count: Number of updates.

    Returns:
      Losses of the critic [count].
    """
    return self.train_on(self.sample_batches(count))

  def sample_batches(self, count: int) -> list[np.ndarray]:
    """Return arrays of several batches [count, batch, ...]; `sample_batch`."""
    batches = [self.sample_batch() for _ in range(count)]
    return [np.array(values, np.float32) for values in zip(*batches)]

  def train_on(self, batches: list[np.ndarray]) -> np.ndarray:
    """Update once per batch of `sample_batches`; return the losses."""
    self._check_synced(len(batches[0]))
    return self._graph.train_many(batches)

  def update_target_net(self) -> None:
    """Move the target networks a step towards the trained networks."""
    self._graph.update_target()

  def check_synced(self) -> None:
    """Assert that all ranks have the same weights."""
    self.Q_adam.check_synced()
    self.pi_adam.check_synced()

  def check_finite(self, kept: Callable[[], str]) -> None:
    """Check that weights and statistics are finite before saving them.

    Args:
      kept: Function that describes the last complete checkpoint in the error.

    Raises:
      NotFinite: If they are not.
    """
    if not self._graph.is_finite()[0]:
      raise errors.NotFinite(
        f'The weights are not finite after {self.Q_adam.t} updates; {kept()}. '
        'Lower the learning rates (setting lr) or the rewards, and start a new '
        'run.'
      )

  def logs(self, prefix: str = '') -> list[tuple[str, Any]]:
    """Return names and dimension means of the normalizers' statistics."""
    start = f'{prefix.rstrip("/")}/' if prefix else ''
    moments = self.sess.run(
      {
        f'{start}stats_{key}/{part}': getattr(stats, part)
        for key, stats in (('o', self.o_stats), ('g', self.g_stats))
        for part in ('mean', 'std')
      }
    )
    return [(name, np.mean(values)) for name, values in moments.items()]

  def save(self, save_path: str) -> None:
    """Write all variables to a file for `load_path`."""
    tf_util.save_variables(save_path, sess=self.sess)

  def __getstate__(self) -> dict[str, Any]:
    """Return settings and weights; neither replay nor optimizer."""
    return {
      'settings': self.settings.to_plain(),
      'dims': self.input_dims,
      'subtract_goals': self.subtract_goals,
      'info': self.info,
      'tf': self.sess.run(self._graph.variables),
    }

  def __setstate__(self, state: dict[str, Any]) -> None:
    """Restore the agent, which can act but not learn.

    Raises:
      UsageError: If the value of a setting is not allowed.
      ValueError: If the weights do not fit.
    """
    weights = state['tf']
    self.__init__(  # type: ignore[misc]
      Settings.read(state['settings']),
      state['dims'],
      subtract_goals=state.get('subtract_goals', util.simple_goal_subtract),
      info=state['info'],
    )
    for variable, value in zip(self._graph.variables, weights, strict=True):
      variable.load(value, self.sess)

  def _preprocess_og(
    self, o: np.ndarray, ag: np.ndarray, g: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    settings = self.settings
    if settings.relative_goals:
      g = self.subtract_goals(
        g.reshape(-1, self.dimg), ag.reshape(-1, self.dimg)
      ).reshape(g.shape)
    return clip(o, settings.clip_obs), clip(g, settings.clip_obs)

  def _check_synced(self, count: int) -> None:
    """Compare the ranks at the first of each hundred updates."""
    done, self._updates = self._updates, self._updates + count
    if -done % mpi.CHECK_EVERY < count:
      self.check_synced()
