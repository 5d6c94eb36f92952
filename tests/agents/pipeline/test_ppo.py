"""PPO in the pipeline does what it does within its own graph."""

import contextlib
import functools
import re

import gymnasium
import numpy as np
import pytest

from agents import configs, networks
from agents.pipeline import episodes, ppo, samplers
from agents.pipeline.params import ppo_pendulum
from agents.ppo import policy as policy_lib
from agents.run import errors
from agents.tools import attr_dict
from agents.tools.tf1 import tf
from tests.agents.pipeline import sessions

WORKERS, OBSERV, ACTION = 3, 4, 2
# Lengths of the episodes of each worker, over and over.
DURATIONS = [(2, 5), (3,), (7, 1)]


def make_config(**settings):
  return {
    **configs.default(),
    'update_every': 4,
    'update_epochs': 3,
    'max_length': 7,
    'policy_layers': (6, 5),
    'value_layers': (6,),
    **settings,
  }


def box(*shape):
  return {'typ': 'Box', 'dim': list(shape), 'lim': None}


CHOICE = {'typ': 'Discrete', 'dim': ACTION, 'lim': None}


def find_actions(config):
  """Space that the network of a configuration is for."""
  discrete = config['network'] is networks.feed_forward_categorical
  return CHOICE if discrete else box(ACTION)


@contextlib.contextmanager
def make_agent(config, session=None):
  """Agent with its memory, in a session with initialized variables."""
  session, space = session or sessions.SmallSession(), find_actions(config)
  train = episodes.EpisodeMemory(
    session,
    keys=ppo_pendulum.find_keys(space),
    max_length=config['max_length'],
  )
  memory = {'train': train}
  with session.graph.as_default(), session.tf_session().as_default():
    tf.set_random_seed(0)
    agent = ppo.PPOAgent(
      session,
      memory,
      observation_space=box(OBSERV),
      action_space=space,
      policy=functools.partial(policy_lib.Policy, config=config),
      sampler=samplers.Compose(
        [samplers.pick_memory, samplers.take_episodes],
        count=config['update_every'],
      ),
    )
    session.tf_session().run(tf.global_variables_initializer())
    yield agent
  session.tf_session().close()


class Stream:
  """Scripted observations, rewards and ends of the workers, for ever."""

  def __init__(self, seed=0):
    self._random = np.random.default_rng(seed)
    self._steps = [0] * WORKERS
    self._episodes = [0] * WORKERS
    self.masks = np.zeros((WORKERS, 1), np.float32)
    self.observ = self._draw()

  def step(self):
    """Rewards and done flags of the current step; goes on to the next one."""
    done = np.zeros(WORKERS, bool)
    for worker, durations in enumerate(DURATIONS):
      self._steps[worker] += 1
      duration = durations[self._episodes[worker] % len(durations)]
      if self._steps[worker] == duration:
        self._steps[worker] = 0
        self._episodes[worker] += 1
        done[worker] = True
    self.observ = self._draw()
    self.masks = 1 - done[:, None].astype(np.float32)
    return self._random.normal(size=WORKERS).astype(np.float32), done

  def _draw(self):
    return 3 * self._random.normal(size=(WORKERS, OBSERV)).astype(np.float32)


class Explorer:
  """Acts until some number of episodes has ended; returns the chunk."""

  def __init__(self, agent, stream):
    self._agent = agent
    self._stream = stream
    self._hidden = agent.reset_hidden_state(WORKERS)

  def explore(self, n_episodes, watch=None):
    stream, rows = self._stream, []
    while n_episodes > 0:
      before = {'/observations/agent': stream.observ, '/masks': stream.masks}
      result = self._agent.action_generator(
        {'agent': stream.observ}, self._hidden, stream.masks
      )
      self._hidden = result['hidden_state']
      reward, done = stream.step()
      self._agent.remember({'agent': before['/observations/agent']}, reward)
      n_episodes -= done.sum()
      row = {
        **before,
        '/rewards': reward[:, None],
        '/agents/agent/actions': result['actions'],
      }
      for key, value in result['artifacts'].items():
        row[f'/agents/agent/artifacts/{key}'] = value
      rows.append(row)
      if watch:
        watch(row, done)
    half_step = {k: np.zeros_like(v) for k, v in rows[0].items()}
    half_step.update(
      {'/observations/agent': stream.observ, '/masks': stream.masks}
    )
    rows.append(half_step)
    return {k: np.stack([row[k] for row in rows], 1) for k in rows[0]}


class TemplateBatch:
  """What the algorithm needs to know of environments."""

  def __init__(self, space):
    self.observ = tf.zeros([WORKERS, OBSERV])
    self.action = tf.zeros([WORKERS, ACTION])
    if space is CHOICE:
      self.action = tf.zeros([WORKERS], tf.int32)
    self.action_space = gymnasium.spaces.Discrete(ACTION)
    self.reward = tf.zeros([WORKERS])

  def __len__(self):
    return WORKERS


class Reference:
  """The algorithm by its own callbacks and with its own memory."""

  def __init__(self, config):
    self._graph = tf.Graph()
    with self._graph.as_default():
      batch = TemplateBatch(find_actions(config))
      self._observ = tf.placeholder(tf.float32, (WORKERS, OBSERV))
      self._action = tf.placeholder_with_default(
        batch.action, batch.action.shape
      )
      self._reward = tf.placeholder(tf.float32, (WORKERS,))
      self._rows = tf.placeholder(tf.int32, (None,))
      yes, no = tf.constant(True), tf.constant(False)
      algorithm = config['algorithm'](
        batch, None, yes, no, attr_dict.AttrDict(config)
      )
      everyone = tf.range(WORKERS)
      self._begin = algorithm.begin_episode(self._rows)
      self._perform = algorithm.perform(everyone, self._observ)
      self._experience = algorithm.experience(
        everyone, self._observ, self._action, self._reward, None, None
      )
      self._end = algorithm.end_episode(self._rows)
      self.variables = find_variables()
      options = tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
      )
      self.sess = tf.Session(graph=self._graph, config=options)
      self.sess.run(tf.global_variables_initializer())

  def read(self):
    return self.sess.run(self.variables)

  def step(self, row, done):
    """What one step of `agents.tools.simulate` does, without environments."""
    starting = np.flatnonzero(row['/masks'][:, 0] == 0)
    self.sess.run(self._begin, {self._rows: starting})
    observ = {self._observ: row['/observations/agent']}
    self.sess.run(self._perform, observ)
    feed = {
      self._action: row['/agents/agent/actions'],
      self._reward: row['/rewards'][:, 0],
    }
    self.sess.run(self._experience, {**observ, **feed})
    self.sess.run(self._end, {self._rows: np.flatnonzero(done)})


def find_variables():
  """Dict from short name to variable, of all that agent and reference share."""
  return {
    x.op.name.removeprefix('agent/'): x
    for x in tf.global_variables()
    if not re.search('_temporary|memory', x.op.name)
  }


@pytest.mark.parametrize(
  'network',
  [
    pytest.param('feed_forward_gaussian', marks=pytest.mark.slow),
    'recurrent_gaussian',
    pytest.param('feed_forward_categorical', marks=pytest.mark.slow),
  ],
)
def test_equals_algorithm_with_own_memory(network):
  """Bitwise: weights, slots of Adam, filters and penalty of two updates.

  Episodes reach over the updates, and one that ends together with the last
  one that fits is dropped.
  """
  config = make_config(
    network=getattr(networks, network),
    gae_lambda=0.9 if network == 'recurrent_gaussian' else None,
  )
  reference = Reference(config)
  with make_agent(config) as agent:
    variables, sess = find_variables(), tf.get_default_session()
    assert set(variables) == set(reference.variables)
    for name, value in reference.read().items():
      variables[name].load(value, sess)
    initial = reference.read()
    explorer = Explorer(agent, Stream())
    for _ in range(3):
      chunk = explorer.explore(config['update_every'], reference.step)
      agent.memory['train'].store(chunk)
      agent.update()
      expected = reference.read()
      for name, value in sess.run(variables).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
  assert {'normalize_observ/mean', 'normalize_reward/var_sum'} < set(expected)
  assert any('Adam' in x for x in expected)
  same = [k for k, v in expected.items() if np.array_equal(v, initial[k])]
  assert set(same) <= {'penalty/penalty'}, same


def test_evaluation_takes_means_and_counts_nothing():
  with make_agent(make_config()) as agent:
    explorer = Explorer(agent, Stream())
    agent.memory['train'].store(explorer.explore(4))
    agent.update()
    sess = tf.get_default_session()
    before = sess.run(find_variables())
    observ = np.random.default_rng(1).normal(size=(5, OBSERV))
    arguments = {'agent': observ.astype(np.float32)}, np.zeros((5, 1))
    result = agent.action_generator(*arguments, np.ones((5, 1)), True)
    again = agent.action_generator(*arguments, np.ones((5, 1)), True)
    after = sess.run(find_variables())
    np.testing.assert_equal(before, after)
    mean = result['artifacts']['mean']
    np.testing.assert_array_equal(result['actions'], mean)
    np.testing.assert_array_equal(result['actions'], again['actions'])
    sampled = agent.action_generator(*arguments, np.ones((5, 1)))
    assert (sampled['actions'] != sampled['artifacts']['mean']).all()
    np.testing.assert_array_equal(sampled['artifacts']['mean'], mean)
    np.testing.assert_equal(before, sess.run(find_variables()))


def test_observations_of_another_shape():
  """Than the tree says; not an error of TensorFlow."""
  with make_agent(make_config()) as agent:
    observ = {'agent': np.zeros((2, OBSERV + 1), np.float32)}
    masks = np.zeros((2, 1), np.float32)
    with pytest.raises(errors.UsageError, match=f'is .{OBSERV}.; make them'):
      agent.action_generator(observ, agent.reset_hidden_state(2), masks)


def test_memory_of_network_begins_with_the_episode():
  """States of recurrent networks are those of explorers, masks reset them."""
  config = make_config(network=networks.recurrent_gaussian)
  with make_agent(config) as agent:
    assert agent.hidden_size == config['policy_layers'][-1]
    observ = {'agent': np.ones((2, OBSERV), np.float32)}
    state = np.full((2, agent.hidden_size), 0.5, np.float32)
    masks = np.array([[0], [1]], np.float32)
    result = agent.action_generator(observ, state, masks, True)
    fresh = agent.action_generator(
      observ, agent.reset_hidden_state(2), masks, True
    )
    for key in ('actions', 'hidden_state'):
      np.testing.assert_array_equal(result[key][0], fresh[key][0])
      assert (result[key][1] != fresh[key][1]).all(), key


@pytest.mark.parametrize('change', ['count', 'max_length'])
def test_sizes_that_differ_from_the_configuration(change):
  """Those of sampler and memory; not an error of TensorFlow."""
  with make_agent(make_config()) as agent:
    if change == 'count':
      agent.sampler = lambda memories: memories['train'].take(3)
    else:
      agent.memory['train']._max_length += 1
    agent.memory['train'].store(Explorer(agent, Stream()).explore(4))
    with pytest.raises(errors.UsageError, match='equal to the count of the sa'):
      agent.update()


def test_waits_for_enough_episodes():
  """No update before there are `update_every`; the monitor gets its numbers."""
  session = sessions.SmallSession()
  with make_agent(make_config(), session) as agent:
    explorer = Explorer(agent, Stream())
    agent.update()
    agent.memory['train'].store(explorer.explore(2))
    agent.update()
    assert not session.monitor.pack()
    assert agent.step() == {}
    memory = agent.memory['train']
    memory.load_state_dict(memory.state_dict())
    agent.memory['train'].store(explorer.explore(2))
    agent.update()
    values = session.monitor.pack()
    names = ('kl_change', 'penalty', 'avg_policy_loss', 'episode_length')
    assert {f'/update/agent/{x}' for x in names} <= set(values)
    length = values['/update/agent/episode_length']
    assert length['num'] == 1 and length['sum'] == np.mean([2, 3, 3, 5])


@pytest.mark.parametrize('key', ['network', 'max_length'])
def test_configuration_has_to_be_complete(key):
  with pytest.raises(errors.UsageError, match=key):
    with make_agent(make_config(**{key: None})):
      pass


def test_refuses_other_spaces():
  arguments = [
    ('observations', {'observation_space': None, 'action_space': box(2)}),
    ('actions', {'observation_space': box(4), 'action_space': None}),
    ('vectors', {'observation_space': box(4), 'action_space': box(2, 2)}),
    ('vectors', {'observation_space': box(4), 'action_space': {'dim': [2]}}),
    ('space of the', {'observation_space': box(4), 'action_space': 1.5}),
  ]
  for words, spaces in arguments:
    with pytest.raises(errors.UsageError, match=words):
      ppo.PPOAgent(
        sessions.SmallSession(), {}, policy=None, sampler=None, **spaces
      )
