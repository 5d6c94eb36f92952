"""Graph of the updates: batches, gradients, Adam and the target networks."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents import utility
from agents.run import references
from agents.tools import callables
from agents.tools.tf1 import tf
from baselines_her import losses, mpi, util
from baselines_her.actor_critic import ActorCritic
from baselines_her.normalizer import Normalizer
from baselines_her.settings import Settings


class TrainingGraph:
  """All parts of a `DDPG` agent that are computed in the graph.

  A single batch enters the graph through a staging area; many batches enter as
  one array per key, over which the graph loops. Variables are created in the
  current scope, which must be that of the settings.

  Args:
    settings: Settings of the agent.
    dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    sess: Session of the networks.

  Attributes:
    stage_shapes: Dict of the shapes of the arrays of a batch, in order.
    o_stats, g_stats: Normalizers.
    main, target: Trained networks and target networks, on the staged batch.
    losses: `Losses` of the staged batch.
    Q_grad, pi_grad: Gradients of critic and actor, one vector each.
    Q_adam, pi_adam: Optimizers.
    variables: All variables except the slots of the optimizers.
    stage: Function that stages the arrays of a batch, in order.
    train: Function that updates both networks on the staged batch; returns the
      loss of the critic and the values [batch, 1] of the policy's actions.
    is_finite: Function that returns a list of one bool, whether all are finite.
    init_target: Function that copies the networks to the target networks.
    update_target: Function that moves these a step towards the networks.
  """

  def __init__(
    self, settings: Settings, dims: dict[str, int], sess: tf.Session
  ):
    self._settings, self._dims, self._sess = settings, dims, sess
    self.stage_shapes = _define_stage_shapes(dims)
    limits = settings.norm_eps, settings.norm_clip, sess
    with tf.variable_scope('o_stats'):
      self.o_stats = Normalizer(dims['o'], *limits)
    with tf.variable_scope('g_stats'):
      self.g_stats = Normalizer(dims['g'], *limits)
    batch, self.stage = self._define_stage()
    self.main, self.target = self._define_networks(batch)
    self.losses = losses.define_losses(batch, self.main, self.target, settings)
    self._Q_vars = self._trainable('main/Q')
    self._pi_vars = self._trainable('main/pi')
    self.Q_adam, self.pi_adam = (
      mpi.MpiAdam(x, scale_grad_by_procs=False, sess=sess)
      for x in (self._Q_vars, self._pi_vars)
    )
    Q_gradients, pi_gradients = gradients = self._define_gradients(self.losses)
    self.Q_grad = util.flatten_grads(self._Q_vars, Q_gradients)
    self.pi_grad = util.flatten_grads(self._pi_vars, pi_gradients)
    with tf.control_dependencies([self._define_update(gradients)]):
      fetches = [tf.identity(self.losses.critic), self.main.Q_pi_tf]
    self.train = callables.make_function(fetches, [], sess)
    self.init_target, self.update_target = self._define_targets()
    self.variables = tf.get_collection(
      tf.GraphKeys.GLOBAL_VARIABLES, f'{settings.scope}/'
    )
    finite = [tf.reduce_all(tf.is_finite(x)) for x in self.variables]
    self.is_finite = callables.make_function([tf.reduce_all(finite)], [], sess)
    utility.initialize_variables(sess, None, None, variables=self.variables)
    self.Q_adam.sync()
    self.pi_adam.sync()
    self.init_target()

  def define_acting(self, net: ActorCritic) -> Callable[..., list]:
    """Return a function that acts with one of the networks.

    Its arguments are observations and goals [batch, size], and whether to
    compute values. It returns a list of the actions and, if requested, their
    values [batch, 1].
    """
    # Feeding what the stage returns leaves the stage alone.
    feeds = [net.o_tf, net.g_tf]
    alone, with_values = (
      callables.make_function(fetches, feeds, self._sess, small=True)
      for fetches in ([net.pi_tf], [net.pi_tf, net.Q_pi_tf])
    )
    return lambda o, g, compute_Q: (with_values if compute_Q else alone)(o, g)

  def train_many(self, batches: Sequence[np.ndarray]) -> np.ndarray:
    """Run several updates in one run of the graph.

    Args:
      batches: List of float32 arrays [updates, batch, ...] in the order of
        the staged keys.

    Returns:
      Losses of the critic [updates].
    """
    return self._loop(*batches)[0]

  def _define_stage(self) -> tuple[losses.Batch, Callable[..., None]]:
    """Return the batch from the staging area, and a function to stage one."""
    shapes = self.stage_shapes
    inputs = [tf.placeholder(tf.float32, x) for x in shapes.values()]
    name = tf.get_default_graph().unique_name('staged_batch', False)
    put = tf.raw_ops.Stage(values=inputs, shared_name=name)
    got = tf.raw_ops.Unstage(
      dtypes=[tf.float32] * len(inputs), shared_name=name
    )
    for tensor, shape in zip(got, shapes.values()):
      tensor.set_shape(shape)
    stage = callables.make_function(put, inputs, self._sess, small=True)
    return self._name_batch(got), stage

  def _name_batch(self, tensors: Iterable[tf.Tensor]) -> losses.Batch:
    """Return a dict of the tensors of a batch, with rewards [batch, 1]."""
    batch = dict(zip(self.stage_shapes, tensors))
    batch['r'] = tf.reshape(batch['r'], [-1, 1])
    return batch

  def _create_networks(self, inputs: losses.Batch) -> ActorCritic:
    settings, dims = self._settings, self._dims
    sizes = {'hidden': settings.hidden, 'layers': settings.layers}
    kind: Any = settings.network_class
    if not callable(kind):
      # The name was checked where the run was read.
      kind = references.resolve(kind, references.EVERYTHING)
    return kind(
      inputs,
      dimo=dims['o'],
      dimg=dims['g'],
      dimu=dims['u'],
      max_u=settings.action_limit,
      o_stats=self.o_stats,
      g_stats=self.g_stats,
      **{**sizes, **settings.network_args},
    )

  def _define_networks(
    self, batch: losses.Batch, reuse: bool | None = None
  ) -> tuple[ActorCritic, ActorCritic]:
    """Create networks on the states, target networks on the next states."""
    after = {'o': batch['o_2'], 'g': batch['g_2'], 'u': batch['u']}
    with tf.variable_scope('main', reuse=reuse):
      main = self._create_networks(batch)
    with tf.variable_scope('target', reuse=reuse):
      target = self._create_networks(after)
    return main, target

  def _define_gradients(self, found: losses.Losses) -> list[list[tf.Tensor]]:
    """Return the gradients of the critic and of the actor."""
    pairs = [(found.critic, self._Q_vars), (found.actor, self._pi_vars)]
    gradients = [tf.gradients(loss, variables) for loss, variables in pairs]
    for (_, variables), values in zip(pairs, gradients):
      unused = [v.name for v, g in zip(variables, values) if g is None]
      assert not unused, f'no gradient for {unused}'
    return gradients

  def _define_update(self, gradients: list[list[tf.Tensor]]) -> tf.Operation:
    """Define the update of critic and actor, from the same weights."""
    Q_gradients, pi_gradients = gradients
    with tf.control_dependencies(Q_gradients + pi_gradients):
      Q_update = self.Q_adam.define_update(Q_gradients, self._settings.Q_lr)
    # Ranks must communicate in the same order.
    with tf.control_dependencies([Q_update]):
      return self.pi_adam.define_update(pi_gradients, self._settings.pi_lr)

  @functools.cached_property
  def _loop(self) -> Callable[..., list[np.ndarray]]:
    # Agents that only act do without the loop.
    with self._sess.graph.as_default():
      with tf.variable_scope(self._settings.scope, reuse=True):
        return self._define_loop()

  def _define_loop(self) -> Callable[..., list[np.ndarray]]:
    """Define many updates, with the same numbers as one by one."""
    inputs = [
      tf.placeholder(tf.float32, (None, *shape))
      for shape in self.stage_shapes.values()
    ]
    count = tf.shape(inputs[0])[0]

    def body(index: tf.Tensor, values: tf.TensorArray) -> tuple:
      batch = self._name_batch([tf.gather(x, index) for x in inputs])
      main, target = self._define_networks(batch, reuse=True)
      found = losses.define_losses(batch, main, target, self._settings)
      update = self._define_update(self._define_gradients(found))
      with tf.control_dependencies([update]):
        return index + 1, values.write(index, found.critic)

    _, values = tf.while_loop(
      lambda index, unused_values: index < count,
      body,
      [0, tf.TensorArray(tf.float32, count)],
      parallel_iterations=1,
      back_prop=False,
    )
    return callables.make_function([values.stack()], inputs, self._sess)

  def _define_targets(self) -> list[Callable[[], None]]:
    """Define the initialization and the updates of the target networks.

    theta' <- polyak theta' + (1 - polyak) theta
    """
    polyak = self._settings.polyak
    copy, average = [], []
    for part in ('Q', 'pi'):
      mains = self._trainable(f'main/{part}')
      for main, target in zip(mains, self._trainable(f'target/{part}')):
        mean = polyak * target + (1.0 - polyak) * main
        copy.append(tf.assign(target, main))
        average.append(tf.assign(target, mean))
    return [
      callables.make_function(tf.group(*x), [], self._sess)
      for x in (copy, average)
    ]

  def _trainable(self, scope: str) -> list[tf.Variable]:
    found = tf.get_collection(
      tf.GraphKeys.TRAINABLE_VARIABLES, f'{self._settings.scope}/{scope}/'
    )
    assert found, f'{scope} has no variables'
    return found


def _define_stage_shapes(
  dims: dict[str, int],
) -> dict[str, tuple[int | None, ...]]:
  """Return the shapes of a batch of transitions, in the original's order."""
  shapes: dict[str, tuple[int | None, ...]] = {
    key: (None, dims[key]) for key in sorted(dims) if key[:5] != 'info_'
  }
  return {**shapes, 'o_2': shapes['o'], 'g_2': shapes['g'], 'r': (None,)}
