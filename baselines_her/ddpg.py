"""Deep deterministic policy gradients towards goals, Lillicrap et al. 2016."""

import contextlib
from collections import OrderedDict

import numpy as np

from agents.tools.tf1 import tf
from baselines_her import demonstrations
from baselines_her import mpi
from baselines_her import replay_buffer
from baselines_her import tf_util
from baselines_her import training_graph
from baselines_her import util
from baselines_her.normalizer import Normalizer


class DDPG:
  """Agent with actor, critic, their slow copies, normalizers and replay.

  Args:
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    buffer_size: Capacity of the replay in transitions.
    hidden: Number of units of each hidden layer.
    layers: Number of hidden layers.
    network_class: Name of the networks as `module:class`.
    polyak: Share that the slow copies keep at each update.
    batch_size: Number of transitions per gradient, demonstrations included.
    Q_lr: Learning rate of the critic.
    pi_lr: Learning rate of the actor.
    norm_eps: Smallest standard deviation when normalising.
    norm_clip: Largest magnitude of normalised inputs.
    max_u: Largest magnitude of actions.
    action_l2: Weight of the mean square of actions in the loss of the actor.
    clip_obs: Largest magnitude of observations and goals.
    scope: Scope of all variables.
    T: Time limit of episodes.
    rollout_batch_size: Number of environments of this rank.
    subtract_goals: Function of two goals to their difference.
    relative_goals: Whether goals are relative to what is achieved.
    clip_pos_returns: Whether values above zero are cut.
    clip_return: Largest magnitude of values; None for no limit.
    bc_loss: Whether to imitate demonstrations, 0 or 1.
    q_filter: Whether only those that are better than the policy, 0 or 1.
    num_demo: Number of demonstrations to use.
    demo_batch_size: How many transitions of a batch are demonstrated.
    prm_loss_weight: Weight of the usual loss of the actor with `bc_loss`.
    aux_loss_weight: Weight of the imitation loss.
    sample_transitions: Function that samples from episodes; see
      `baselines_her.her_sampler`.
    gamma: Discount factor.
    reuse: Whether the variables of the scope exist already.
    buffer: Replay to use instead of a new one.
    **kwargs: Stored with a saved policy, such as `info`.

  Attributes:
    sess: Session of the networks.
    main, target: Networks that learn, and their slow copies.
    o_stats, g_stats: Normalizers.
    buffer: Replay of this rank.
    demo_buffer: Replay of the demonstrations, None without `bc_loss`.
  """

  @util.store_args
  def __init__(
    self,
    input_dims,
    buffer_size,
    hidden,
    layers,
    network_class,
    polyak,
    batch_size,
    Q_lr,
    pi_lr,
    norm_eps,
    norm_clip,
    max_u,
    action_l2,
    clip_obs,
    scope,
    T,
    rollout_batch_size,
    subtract_goals,
    relative_goals,
    clip_pos_returns,
    clip_return,
    bc_loss,
    q_filter,
    num_demo,
    demo_batch_size,
    prm_loss_weight,
    aux_loss_weight,
    sample_transitions,
    gamma,
    reuse=False,
    buffer=None,
    **kwargs,
  ):
    self._saved_names = sorted(set(self.__dict__) - _NOT_SAVED)
    if self.clip_return is None:
      self.clip_return = np.inf
    self.create_actor_critic = util.import_function(network_class)
    self.dimo, self.dimg, self.dimu = (input_dims[x] for x in 'ogu')
    self.stage_shapes = self._define_stage_shapes()
    taken = self._scope_variables(tf.get_default_graph())
    with tf_util.own_graph(taken and not reuse):
      self.sess = tf_util.get_session()
      with tf.variable_scope(scope, reuse=reuse or None):
        self._create_network()
    self._create_buffers(buffer)

  def get_actions(
    self,
    o,
    ag,
    g,
    noise_eps=0.0,
    random_eps=0.0,
    use_target_net=False,
    compute_Q=False,
  ):
    """Choose actions, with the two kinds of exploration.

    Args:
      o: Observations [batch, dimo].
      ag: Achieved goals [batch, dimg].
      g: Goals [batch, dimg].
      noise_eps: Standard deviation of the noise in units of `max_u`.
      random_eps: Probability that an action is replaced by a uniform one.
      use_target_net: Whether the slow copy chooses.
      compute_Q: Whether to return the values of the policy's actions, too.

    Returns:
      Actions float32 [batch, dimu], or [dimu] for a batch of one; with
      `compute_Q` a list of the actions and the values [batch, 1].
    """
    o, g = self._preprocess_og(o, ag, g)
    o, g = o.reshape(-1, self.dimo), g.reshape(-1, self.dimg)
    frozen = self._frozen.get(use_target_net)
    if frozen:
      values = frozen(o, g, compute_Q)
    else:
      net = 'target' if use_target_net else 'main'
      values = self._act[net, compute_Q](o, g)
    u = values[0]
    # Chance is asked in this order also when it has no effect, so that the
    # numbers do not depend on the settings.
    u += noise_eps * self.max_u * np.random.randn(*u.shape)
    u = util.clip(u, self.max_u)
    replaced = np.random.binomial(1, random_eps, u.shape[0]).reshape(-1, 1)
    random = np.random.uniform(-self.max_u, self.max_u, u.shape)
    u += replaced * (random - u)
    if u.shape[0] == 1:
      u = u[0]
    return [u, values[1]] if compute_Q else u

  @contextlib.contextmanager
  def fixed_weights(self, use_target_net=False):
    """Act faster while no weight changes, such as during an episode.

    Args:
      use_target_net: Whether the slow copy will act.
    """
    net = self.target if use_target_net else self.main
    freeze = getattr(net, 'freeze', lambda sess: None)
    self._frozen = {use_target_net: freeze(self.sess)}
    try:
      yield
    finally:
      self._frozen = {}

  def step(self, obs):
    """Best actions for a dict of observations, as baselines' models do.

    Returns:
      Tuple of the actions and three times None.
    """
    actions = self.get_actions(
      obs['observation'], obs['achieved_goal'], obs['desired_goal']
    )
    return actions, None, None, None

  def init_demo_buffer(self, demo_file, update_stats=True):
    """Fill the replay of demonstrations from a file.

    Args:
      demo_file: Path; see `baselines_her.demonstrations`.
      update_stats: Whether the normalizers learn from them.

    Raises:
      UsageError: If the file is unreadable or has too few demonstrations.
    """
    assert self.demo_buffer is not None, 'demonstrations need bc_loss = 1'
    for episode in demonstrations.load(
      demo_file, self.num_demo, self.T, self.input_dims
    ):
      self.demo_buffer.store_episode(episode)
      if update_stats:
        self.update_stats(episode)

  def store_episode(self, episode_batch, update_stats=True):
    """Store episodes in the replay.

    Args:
      episode_batch: Dict of arrays [episodes, time, size], `o` and `ag` with
        one more time step than the others.
      update_stats: Whether the normalizers learn from them.
    """
    self.buffer.store_episode(episode_batch)
    if update_stats:
      self.update_stats(episode_batch)

  def update_stats(self, episode_batch):
    """Let the normalizers learn from hindsight transitions of episodes."""
    episode_batch['o_2'] = episode_batch['o'][:, 1:, :]
    episode_batch['ag_2'] = episode_batch['ag'][:, 1:, :]
    count = util.transitions_in_episode_batch(episode_batch)
    transitions = self.sample_transitions(episode_batch, count)
    o, g = self._preprocess_og(*(transitions[key] for key in ('o', 'ag', 'g')))
    self.o_stats.update(o)
    self.g_stats.update(g)
    self.o_stats.recompute_stats()
    self.g_stats.recompute_stats()

  def sample_batch(self):
    """Arrays of a batch in the order of the staged keys."""
    if self.bc_loss:
      own = self.buffer.sample(self.batch_size - self.demo_batch_size)
      shown = self.demo_buffer.sample(self.demo_batch_size)
      batch = {k: np.concatenate([v, shown[k]]) for k, v in own.items()}
    else:
      batch = self.buffer.sample(self.batch_size)
    o, o_2, g = batch['o'], batch['o_2'], batch['g']
    batch['o'], batch['g'] = self._preprocess_og(o, batch['ag'], g)
    batch['o_2'], batch['g_2'] = self._preprocess_og(o_2, batch['ag_2'], g)
    return [batch[key] for key in self.stage_shapes]

  def stage_batch(self, batch=None):
    """Hand a batch to the graph, which uses it in the next run."""
    if batch is None:
      batch = self.sample_batch()
    self._graph.stage(batch)

  def train(self, stage=True):
    """Update critic and actor once.

    Args:
      stage: Whether to sample a batch, or to use one that is staged.

    Returns:
      Tuple of the loss of the critic and the values [batch, 1] of the
      policy's actions, both from before the update.
    """
    self._check_synced(1)
    if stage:
      self.stage_batch()
    return tuple(self._graph.train())

  def train_many(self, count):
    """The same as calling `train` several times, in one run of the graph.

    Args:
      count: Number of updates.

    Returns:
      Losses of the critic [count].
    """
    return self.train_on(self.sample_batches(count))

  def sample_batches(self, count):
    """Arrays of several batches [count, batch, ...], see `sample_batch`."""
    batches = [self.sample_batch() for _ in range(count)]
    return [np.array(values, np.float32) for values in zip(*batches)]

  def train_on(self, batches):
    """Update once for each batch of `sample_batches`; returns the losses."""
    self._check_synced(len(batches[0]))
    return self._graph.train_many(batches)

  def update_target_net(self):
    """Move the slow copies a step towards the networks."""
    self._graph.update_target()

  def check_synced(self):
    """Assert that all ranks have the same weights."""
    self.Q_adam.check_synced()
    self.pi_adam.check_synced()

  def clear_buffer(self):
    """Forget all episodes."""
    self.buffer.clear_buffer()

  def logs(self, prefix=''):
    """List of names and means over dimensions of the normalizers."""
    start = f'{prefix}/' if prefix and not prefix.endswith('/') else prefix
    names = [
      (f'stats_{key}/{part}', getattr(stats, part))
      for key, stats in (('o', self.o_stats), ('g', self.g_stats))
      for part in ('mean', 'std')
    ]
    values = self.sess.run([x for _, x in names])
    return [(start + name, np.mean(x)) for (name, _), x in zip(names, values)]

  def save(self, save_path):
    """Write all variables to a file for `load_path`."""
    tf_util.save_variables(save_path, sess=self.sess)

  def __getstate__(self):
    """Settings and weights; neither replay nor optimiser."""
    state = {name: self.__dict__[name] for name in self._saved_names}
    state.update({x: self.__dict__[x] for x in ('dimo', 'dimg', 'dimu')})
    state['clip_return'] = self.clip_return
    state['tf'] = self.sess.run(self._scope_variables())
    return state

  def __setstate__(self, state):
    """Build the agent again; it can act, but has nothing to learn from."""
    state = dict(state)
    weights = state.pop('tf')
    for name in ('dimo', 'dimg', 'dimu'):
      state.pop(name)
    self.__init__(sample_transitions=None, **state)
    variables = self._scope_variables()
    assert len(variables) == len(weights), (len(variables), len(weights))
    for variable, value in zip(variables, weights):
      variable.load(value, self.sess)

  def _define_stage_shapes(self):
    dims = {k: v for k, v in self.input_dims.items() if k[:5] != 'info_'}
    shapes = OrderedDict((k, (None, dims[k])) for k in sorted(dims))
    shapes['o_2'], shapes['g_2'] = shapes['o'], shapes['g']
    shapes['r'] = (None,)
    return shapes

  def _create_network(self):
    limits = self.norm_eps, self.norm_clip, self.sess
    with tf.variable_scope('o_stats'):
      self.o_stats = Normalizer(self.dimo, *limits)
    with tf.variable_scope('g_stats'):
      self.g_stats = Normalizer(self.dimg, *limits)
    graph = training_graph.TrainingGraph(self)
    self._graph = graph
    self.main, self.target = graph.main, graph.target
    self.Q_adam, self.pi_adam = graph.Q_adam, graph.pi_adam
    losses = graph.losses
    self.Q_loss_tf, self.pi_loss_tf = losses.Q_loss, losses.pi_loss
    self.cloning_loss_tf = losses.cloning_loss
    self.Q_grad_tf, self.pi_grad_tf = graph.flat_gradients()
    self.sess.run([x.initializer for x in self._scope_variables()])
    self.Q_adam.sync()
    self.pi_adam.sync()
    self._init_target_net()
    self._act = graph.define_acting()
    self._frozen = {}

  def _create_buffers(self, buffer):
    def create():
      return replay_buffer.create(
        self.input_dims,
        self.T,
        self.buffer_size,
        self.rollout_batch_size,
        self.sample_transitions,
      )

    self.buffer = create() if buffer is None else buffer
    self.demo_buffer = create() if self.bc_loss else None

  def _preprocess_og(self, o, ag, g):
    if self.relative_goals:
      g = self.subtract_goals(
        g.reshape(-1, self.dimg), ag.reshape(-1, self.dimg)
      ).reshape(g.shape)
    return util.clip(o, self.clip_obs), util.clip(g, self.clip_obs)

  def _init_target_net(self):
    """Make the slow copies equal to the networks."""
    self._graph.init_target()

  def _check_synced(self, count):
    """Compare the ranks at the first of each hundred updates."""
    done, self._updates = self._updates, self._updates + count
    if -done % mpi.CHECK_EVERY < count:
      self.check_synced()

  def _scope_variables(self, graph=None):
    return (graph or self.sess.graph).get_collection(
      tf.GraphKeys.GLOBAL_VARIABLES, scope=self.scope + '/'
    )

  _updates = 0


# Arguments that a saved policy does without.
_NOT_SAVED = {'self', 'sample_transitions', 'buffer'}
