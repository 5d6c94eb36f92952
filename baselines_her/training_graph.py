"""Graph of the updates: losses, gradients, Adam and the slow copies."""

import dataclasses
import functools
from collections import OrderedDict

from agents.tools.tf1 import tf
from baselines_her import mpi
from baselines_her import tf_util


@dataclasses.dataclass
class Losses:
  """Scalars to minimise and what goes with them.

  Attributes:
    Q_loss: Mean square of the temporal difference.
    pi_loss: Negative value of the policy's actions plus a penalty on them.
    cloning_loss: Squared distance from the demonstrations, or None.
    Q_pi: Values [batch, 1] of the policy's actions.
  """

  Q_loss: tf.Tensor
  pi_loss: tf.Tensor
  cloning_loss: tf.Tensor | None
  Q_pi: tf.Tensor


class TrainingGraph:
  """Everything of a `DDPG` agent that is computed in the graph.

  A batch reaches the graph through a staging area, or many batches do as one
  array each, which a loop in the graph works off.

  Args:
    agent: The `DDPG` agent, with settings and normalizers.

  Attributes:
    main, target: Networks on the staged batch.
    losses: `Losses` of the staged batch.
    Q_adam, pi_adam: Optimisers.
  """

  def __init__(self, agent):
    self._agent = agent
    self._sess = agent.sess
    self._keys = list(agent.stage_shapes)
    self._define_stage()
    self.main, self.target = self._define_networks(self._staged)
    self.losses = self._define_losses(self._staged, self.main, self.target)
    self._Q_vars = self._variables('main/Q')
    self._pi_vars = self._variables('main/pi')
    self.Q_adam, self.pi_adam = (
      mpi.MpiAdam(x, scale_grad_by_procs=False, sess=agent.sess)
      for x in (self._Q_vars, self._pi_vars)
    )
    self._gradients = self._define_gradients(self.losses)
    with tf.control_dependencies([self._define_update(self._gradients)]):
      fetches = [tf.identity(self.losses.Q_loss), self.losses.Q_pi]
    self.train = tf_util.make_function(fetches, [], self._sess)
    self._define_targets()

  def flat_gradients(self):
    """Gradients of critic and actor, one vector each."""
    return [
      tf.concat([tf.reshape(x, [-1]) for x in gradients], 0)
      for gradients in self._gradients
    ]

  def define_acting(self):
    """Functions that act.

    Returns:
      Dict from `main` or `target`, and whether values are wanted, to a
      function of observations and goals [batch, size] to a list of the
      actions and, if wanted, their values [batch, 1].
    """
    functions = {}
    for name in ('main', 'target'):
      net = getattr(self, name)
      for fetches in ([net.pi_tf], [net.pi_tf, net.Q_pi_tf]):
        # Feeding what the stage returns leaves the stage alone.
        functions[name, len(fetches) > 1] = tf_util.make_function(
          fetches, [net.o_tf, net.g_tf], self._sess
        )
    return functions

  def _define_stage(self):
    """Placeholders of a batch, and the operations that put and get it."""
    shapes = self._agent.stage_shapes
    inputs = [tf.placeholder(tf.float32, x) for x in shapes.values()]
    name = tf.get_default_graph().unique_name('staged_batch', False)
    put = tf.raw_ops.Stage(values=inputs, shared_name=name)
    got = tf.raw_ops.Unstage(
      dtypes=[tf.float32] * len(inputs), shared_name=name
    )
    for tensor, shape in zip(got, shapes.values()):
      tensor.set_shape(shape)
    self._staged = self._name_batch(got)
    stage = tf_util.make_function(put, inputs, self._sess)
    self.stage = lambda batch: stage(*batch)

  def _name_batch(self, tensors):
    """Dict of the tensors of a batch, with rewards [batch, 1]."""
    batch = OrderedDict(zip(self._keys, tensors))
    batch['r'] = tf.reshape(batch['r'], [-1, 1])
    return batch

  def _define_networks(self, batch, reuse=None):
    """Networks on the states of a batch, slow copies on the next states."""
    agent = self._agent
    settings = {
      name: getattr(agent, name)
      for name in (
        'dimo',
        'dimg',
        'dimu',
        'max_u',
        'o_stats',
        'g_stats',
        'hidden',
        'layers',
      )
    }
    after = {'o': batch['o_2'], 'g': batch['g_2'], 'u': batch['u']}
    with tf.variable_scope('main', reuse=reuse):
      main = agent.create_actor_critic(batch, **settings)
    with tf.variable_scope('target', reuse=reuse):
      target = agent.create_actor_critic(after, **settings)
    return main, target

  def _define_losses(self, batch, main, target):
    """Losses of DDPG, arXiv:1509.02971, with clipped targets.

    Every transition bootstraps, as episodes end by time only.
    """
    agent = self._agent
    highest = 0.0 if agent.clip_pos_returns else float('inf')
    wanted = tf.clip_by_value(
      batch['r'] + agent.gamma * target.Q_pi_tf, -agent.clip_return, highest
    )
    Q_loss = tf.reduce_mean(tf.square(tf.stop_gradient(wanted) - main.Q_tf))
    effort = tf.reduce_mean(tf.square(main.pi_tf / agent.max_u))
    pi_loss = -tf.reduce_mean(main.Q_pi_tf) + agent.action_l2 * effort
    cloning_loss = None
    if agent.bc_loss:
      cloning_loss = self._define_cloning_loss(batch, main)
      pi_loss = (
        agent.prm_loss_weight * pi_loss + agent.aux_loss_weight * cloning_loss
      )
    return Losses(Q_loss, pi_loss, cloning_loss, main.Q_pi_tf)

  def _define_cloning_loss(self, batch, main):
    """Distance from demonstrations, Nair et al. 2018, arXiv:1709.10089.

    The demonstrated transitions are the last ones of the batch. The sum is
    not divided by their number. The filter leaves out those that the critic
    deems worse than what the policy would do.
    """
    agent = self._agent
    first = agent.batch_size - agent.demo_batch_size

    def shown(tensor):
      return tf.slice(tensor, [first, 0], [agent.demo_batch_size, -1])

    distance = tf.square(shown(main.pi_tf) - shown(batch['u']))
    if agent.q_filter:
      better = shown(main.Q_tf) > shown(main.Q_pi_tf)
      distance *= tf.cast(better, tf.float32)
    return tf.reduce_sum(distance)

  def _define_gradients(self, losses):
    """Gradients of the critic and of the actor, lists of tensors."""
    pairs = [(losses.Q_loss, self._Q_vars), (losses.pi_loss, self._pi_vars)]
    gradients = [tf.gradients(loss, variables) for loss, variables in pairs]
    for (_, variables), found in zip(pairs, gradients):
      unused = [v.name for v, g in zip(variables, found) if g is None]
      assert not unused, f'no gradient for {unused}'
    return gradients

  def _define_update(self, gradients):
    """Operation that updates critic and actor from the same weights."""
    agent = self._agent
    Q_gradients, pi_gradients = gradients
    with tf.control_dependencies(Q_gradients + pi_gradients):
      Q_update = self.Q_adam.define_update(Q_gradients, agent.Q_lr)
    # Ranks have to communicate in one order.
    with tf.control_dependencies([Q_update]):
      return self.pi_adam.define_update(pi_gradients, agent.pi_lr)

  def train_many(self, batches):
    """Update several times in one run of the graph.

    Args:
      batches: List of float32 arrays [updates, batch, ...] in the order of
        the staged keys.

    Returns:
      Losses of the critic [updates].
    """
    return self._loop(*batches)[0]

  @functools.cached_property
  def _loop(self):
    # Agents that only act do without it.
    with self._sess.graph.as_default():
      with tf.variable_scope(self._agent.scope, reuse=True):
        return self._define_loop()

  def _define_loop(self):
    """Function for many updates, with the same numbers as one by one."""
    inputs = [
      tf.placeholder(tf.float32, (None, *shape))
      for shape in self._agent.stage_shapes.values()
    ]
    count = tf.shape(inputs[0])[0]
    losses = tf.TensorArray(tf.float32, count)

    def body(index, losses):
      batch = self._name_batch([tf.gather(x, index) for x in inputs])
      main, target = self._define_networks(batch, reuse=True)
      loss = self._define_losses(batch, main, target)
      update = self._define_update(self._define_gradients(loss))
      with tf.control_dependencies([update]):
        return index + 1, losses.write(index, loss.Q_loss)

    _, losses = tf.while_loop(
      lambda index, unused_losses: index < count,
      body,
      [0, losses],
      parallel_iterations=1,
      back_prop=False,
    )
    return tf_util.make_function([losses.stack()], inputs, self._sess)

  def _define_targets(self):
    """Operations that copy and average the networks to their slow copies."""
    polyak = self._agent.polyak
    pairs = [
      pair
      for part in ('Q', 'pi')
      for pair in zip(
        self._variables(f'main/{part}'), self._variables(f'target/{part}')
      )
    ]
    copy = [tf.assign(slow, fast) for fast, slow in pairs]
    average = [
      tf.assign(slow, polyak * slow + (1.0 - polyak) * fast)
      for fast, slow in pairs
    ]
    self.init_target, self.update_target = (
      tf_util.make_function(tf.group(*x), [], self._sess)
      for x in (copy, average)
    )

  def _variables(self, scope):
    found = tf.get_collection(
      tf.GraphKeys.TRAINABLE_VARIABLES, f'{self._agent.scope}/{scope}/'
    )
    assert found, f'{scope} has no variables'
    return found
