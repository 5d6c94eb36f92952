"""DDPG: values of a known chain, copies, noise, and what is kept."""

import functools

import numpy as np
import pytest

from agents.pipeline import (
  ddpg,
  env_config,
  gym_explorer,
  memory,
  samplers,
  toolbox,
)
from agents.run import errors, references
from agents.tools.tf1 import tf
from tests.agents.pipeline import sessions

CHAIN = 'tests.agents.pipeline.toy_envs.ChainEnv'
ACTIONS = {'typ': 'Box', 'dim': [2], 'lim': [[-1, 0], [3, 1]]}
OBSERVATIONS = {'typ': 'Box', 'dim': [3], 'lim': [[-9] * 3, [9] * 3]}


@pytest.fixture
def session(tmp_path):
  session = sessions.SmallSession(tmp_path)
  with session.graph.as_default(), session.tf_session().as_default():
    tf.set_random_seed(0)
    np.random.seed(0)
    yield session


def make_agent(session, ring=None, **args):
  """Agent whose variables are initialized."""
  sampler = samplers.Compose(
    [samplers.pick_memory, samplers.sample_replay], batch_size=64
  )
  spaces = {'action_space': ACTIONS, 'observation_space': OBSERVATIONS}
  args = {'sampler': sampler, **spaces, **args}
  agent = ddpg.DDPGAgent(session, {'train': ring}, **args)
  session.tf_session().run(tf.global_variables_initializer())
  return agent


def make_chain(session, **args):
  """Agent, memory and explorer of a chain of two states."""
  env = {'constructor': CHAIN}
  config = env_config.inspect(env)
  ring = memory.RingMemory(session, buffer_chunk_len=500)
  agent = make_agent(
    session,
    ring,
    action_space=config['action_space']['agent'],
    observation_space=config['observation_space']['agent'],
    policy=functools.partial(ddpg.DDPGPolicy, polyak=0.05, gamma=0.9),
    **args,
  )
  explorer = gym_explorer.GymExplorer(
    session, {'agent': agent}, env=env, n_steps=1, warm_start=200
  )
  for _ in range(200):
    ring.store(explorer.update())
  return agent


def read_values(agent):
  """Q of both states under the actions of the agent."""
  states = np.eye(3, dtype=np.float32)[:2]
  masks = np.ones((2, 1), np.float32)
  result = agent.action_generator({'agent': states}, None, masks, True)
  return agent.policy.evaluate(states, result['actions'])


def test_chain(session):
  """Acceptance test 8: Q(s0) = gamma and Q(s1) = 1."""
  agent = make_chain(session)
  for _ in range(600):
    losses = agent.step()
  np.testing.assert_allclose(read_values(agent), [0.9, 1], atol=0.03)
  assert set(losses) == {'loss_actor', 'loss_critic'}
  assert losses['loss_critic'] < 1e-2


def test_step_is_one_run(session):
  """Critic, actor and copies move; the copies by a small part."""
  agent = make_chain(session)
  sess = session.tf_session()
  before = {x.op.name: sess.run(x) for x in tf.global_variables()}
  names = [x.op.name for x in tf.trainable_variables()]
  for name in names:
    copy = before[name.replace('/', '/target_', 1)]
    np.testing.assert_array_equal(before[name], copy)
  calls = []
  train = agent.policy._train
  agent.policy._train = lambda *args: calls.append(args) or train(*args)
  agent.step()
  assert len(calls) == 1
  after = {x.op.name: sess.run(x) for x in tf.global_variables()}
  for name in names:
    copy = name.replace('/', '/target_', 1)
    assert (after[name] != before[name]).any()
    expected = 0.95 * before[copy] + 0.05 * after[name]
    np.testing.assert_allclose(after[copy], expected, 1e-4, 1e-7)


def test_networks(session):
  """Sizes, first weights and limits of the actions."""
  agent = make_agent(session)
  sess = session.tf_session()
  sizes = {
    x.op.name.removeprefix('agent/'): sess.run(x)
    for x in tf.trainable_variables()
    if 'kernel' in x.op.name
  }
  assert [x.shape for k, x in sizes.items() if k.startswith('actor')] == [
    (3, 256),
    (256, 256),
    (256, 256),
    (256, 2),
  ]
  assert sorted(x.shape for k, x in sizes.items() if 'critic' in k) == [
    (2, 128),
    (3, 256),
    (256, 1),
    (256, 128),
    (256, 256),
  ]
  for weights in sizes.values():
    limit = 0.003 if weights.shape[1] < 3 else weights.shape[0] ** -0.5
    assert 0.95 * limit < np.abs(weights).max() <= limit
  observ = np.random.normal(0, 1e4, (50, 3)).astype(np.float32)
  actions = agent.action_generator(
    {'agent': observ}, None, np.ones((50, 1), np.float32), True
  )['actions']
  assert actions.dtype == np.float32
  assert (actions >= [-1, 0]).all() and (actions <= [3, 1]).all()
  middle = agent.action_generator(
    {'agent': 0 * observ}, None, np.ones((50, 1), np.float32), True
  )['actions']
  np.testing.assert_allclose(middle, [[1, 0.5]] * 50, atol=1e-6)


def small_actor(observ, low, high):
  return ddpg.actor_network(observ, low, high, [7])


def test_network_of_the_tree(session):
  """Its name is all that it takes; stored names need to be trusted."""
  node = {
    'name': 'agents.pipeline.ddpg.DDPGPolicy',
    'args': {'actor': {'reference': f'{__name__}:small_actor'}},
  }
  agent = make_agent(session, policy=toolbox.get_part(node))
  shapes = [x.shape.as_list() for x in tf.trainable_variables('agent/actor')]
  assert shapes == [[3, 7], [7], [7, 2], [2]]
  assert agent.policy.act(np.zeros((5, 3), np.float32)).shape == (5, 2)
  toolbox.check_names({'policy': node}, references.parse(['tests']))
  with pytest.raises(references.NotTrusted):
    toolbox.check_names({'policy': node}, references.NOTHING)
  node['args'] = {'actor': {'reference': f'{__name__}:smal_actor'}}
  with pytest.raises(errors.UsageError, match='Did you mean small_actor'):
    toolbox.get_part(node)


@pytest.mark.parametrize(
  'name, value', [('actor_rate', -1), ('polyak', 2), ('gamma', float('nan'))]
)
def test_numbers_out_of_range(session, name, value):
  with pytest.raises(errors.UsageError, match=f'{name} is'):
    make_agent(
      session, policy=functools.partial(ddpg.DDPGPolicy, **{name: value})
    )


def test_noise(session):
  """Starts anew where an episode begins; scaled by the range; correlated."""
  agent = make_agent(session, noise={'sigma': 0.05})
  observ = {'agent': np.zeros((2, 3), np.float32)}
  masks = np.zeros((2, 1), np.float32)
  np.random.seed(1)
  draws = np.random.standard_normal((3, 2, 2))
  np.random.seed(1)
  noise = np.zeros((2, 2))
  for step, flags in enumerate(([0, 0], [1, 1], [1, 0])):
    masks[:, 0] = flags
    actions = agent.action_generator(observ, None, masks)['actions']
    noise = 0.85 * noise * masks + 0.05 * draws[step]
    expected = np.clip([1, 0.5] + noise * [2, 0.5], [-1, 0], [3, 1])
    np.testing.assert_allclose(actions, expected, 1e-5)
  state = agent.state_dict()
  other = make_agent(session, name='other', noise={'sigma': 0.05})
  other.load_state_dict(state)
  np.testing.assert_array_equal(other.state_dict()['noise'], noise)


def test_update_feeds_the_monitor(session):
  agent = make_chain(session, n_update=3)
  for _ in range(2):
    agent.update()
  statistics = session.monitor.pack()
  assert statistics['/update/loss_actor']['num'] == 6
  assert statistics['/update/loss_critic']['num'] == 6


def test_without_data_nothing_happens(session):
  agent = make_agent(session, memory.RingMemory(session))
  assert agent.step() == {}
  agent.update()
  assert session.monitor.pack() == {}


@pytest.mark.parametrize(
  'spaces, message',
  [
    ({'action_space': {'typ': 'Discrete', 'dim': 4, 'lim': None}}, 'actions'),
    ({'observation_space': None}, 'observations of agent'),
    (
      {'action_space': {'typ': 'Box', 'dim': [1], 'lim': [[0], [np.inf]]}},
      'finite bounds',
    ),
  ],
)
def test_wrong_spaces(session, spaces, message):
  with pytest.raises(errors.UsageError, match=message):
    make_agent(session, **spaces)


def test_several_ranks_are_refused(session):
  """Their networks would drift apart."""

  class Pair:
    def Get_size(self):
      return 2

  session.comm = Pair()
  with pytest.raises(errors.UsageError, match='there are 2'):
    make_agent(session)
