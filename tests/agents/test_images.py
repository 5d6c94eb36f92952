"""PPO on images: networks, memory of bytes, training, and loading."""

import functools

import gymnasium
import numpy as np
import pytest

import agents
from agents import configs, networks, runs, utility
from agents.envs import batches as batches_lib
from agents.envs import guard, observations, spaces
from agents.ppo import policy as policy_lib
from agents.run import errors, folder
from agents.tools import attr_dict, in_graph_batch_env
from agents.tools.tf1 import tf
from tests.agents import batches

SMALL = {
  'num_agents': 2,
  'update_every': 2,
  'update_epochs': 2,
  'eval_episodes': 2,
  'max_length': 4,
  'policy_layers': [8],
  'value_layers': [8],
}


class Pixels(gymnasium.Env):
  """A bright column; the better action is on its side.

  Args:
    discrete: Whether actions are discrete.
  """

  observation_space = gymnasium.spaces.Box(0, 255, (40, 36, 3), np.uint8)

  def __init__(self, discrete=True, render_mode=None):
    self.render_mode = render_mode
    self.action_space = gymnasium.spaces.Discrete(2)
    if not discrete:
      self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    return self._draw(), {}

  def step(self, action):
    reward = float(np.ravel(action)[0] * self._side)
    return self._draw(), reward, False, False, {}

  def render(self):
    return self._image

  def _draw(self):
    self._side = self.np_random.integers(2)
    self._image = np.zeros((40, 36, 3), np.uint8)
    self._image[:, 5 + 20 * self._side] = 255
    return self._image


def continuous_pixels():
  return Pixels(discrete=False)


S = gymnasium.spaces
IMAGE = S.Box(0, 255, (40, 36, 3), np.uint8)
FLOATS = S.Box(-1, 1, (40, 36, 3), np.float64)
VECTOR = S.Box(-np.inf, np.inf, (2,), np.float64)
SPACES = {
  'image and state': S.Dict(image=IMAGE, place=VECTOR, gear=S.Discrete(3)),
  'nested': S.Dict(camera=S.Dict(rgb=IMAGE, depth=FLOATS), place=VECTOR),
  'two images': S.Dict(left=IMAGE, right=FLOATS),
  'image in a tuple': S.Tuple([IMAGE, S.MultiBinary(3)]),
  'floats': FLOATS,
  'gray': S.Box(0, 255, (40, 36), np.uint8),
  'vectors': S.Dict(place=VECTOR, speed=S.Box(0, 9, (1,), np.int64)),
  'tuple': S.Tuple([S.Discrete(3), S.MultiDiscrete([3, 2])]),
  'number': S.Discrete(5, start=-1),
}


class Sampled(gymnasium.Env):
  """Four random observations.

  Args:
    what: Key of `SPACES`.
  """

  action_space = S.Discrete(2)

  def __init__(self, what):
    self.observation_space = SPACES[what]

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self.observation_space.sample(), {}

  def step(self, action):
    self._steps += 1
    return self.observation_space.sample(), 1.0, self._steps == 4, False, {}


@pytest.mark.parametrize(
  'shape, dtype, expected',
  [
    ((84, 84, 3), np.uint8, True),
    ((4, 84, 84), np.uint8, True),
    ((84, 84, 3), np.float32, True),
    ((7, 7, 3), np.uint8, False),
    ((84, 84), np.uint8, True),
    ((84, 84), np.float32, False),
    ((128,), np.uint8, False),
  ],
)
def test_what_is_an_image(shape, dtype, expected):
  space = gymnasium.spaces.Box(0, 255, shape, dtype)
  assert spaces.suits_convolutions(space) is expected


@pytest.mark.parametrize('shape', [(84, 84, 3), (3, 84, 84)])
@pytest.mark.parametrize('discrete', [True, False])
def test_graph(shape, discrete):
  """Three convolutions for policy and value; bytes from end to end."""
  config = configs.default()
  config.update(network='convolutional_gaussian', use_gpu=False)
  with tf.Graph().as_default():
    network = policy_lib.Policy(
      shape, 5, tf.constant(False), config, discrete=discrete
    )
    assert network.observ_dtype == tf.uint8
    images = tf.placeholder(tf.uint8, [None, *shape])
    decision = network.act(images)
    assert decision.policy.parameters[0].shape.as_list() == [None, 5]
    kernels = [
      x.shape.as_list()
      for x in tf.trainable_variables()
      if 'conv2d' in x.name and 'kernel' in x.name
    ]
    own = [[8, 8, 3, 32], [4, 4, 32, 64], [3, 3, 64, 64]]
    assert kernels == own + own
    assert not [x for x in tf.global_variables() if 'observ' in x.name]


@pytest.mark.slow
@pytest.mark.parametrize('env', [Pixels, continuous_pixels])
def test_training(env, tmp_path):
  """Trains, continues, loads and evaluates."""
  logdir = str(tmp_path)
  call = dict(params=SMALL, seed=0, env_processes=False)
  (record,) = agents.train(env, logdir, 8, **call)
  assert record['updates'] == 2 and np.isfinite(record['test_return'])
  (record,) = agents.train(env, logdir, 16, **call)
  assert record['updates'] == 4
  with agents.load(logdir, trust='tests') as agent:
    assert agent.config.network == 'convolutional_gaussian'
    result = agents.evaluate(agent, episodes=2)
    assert np.isfinite(result.mean)
    weights = [x.name for x in agent._sess.graph.get_collection('variables')]
    assert any('conv2d' in x for x in weights)
    image = agent.observation_space.sample()
    expected, _ = agent.predict(image, deterministic=True)
    for same in (image.astype(int), (image + 0.5) / 255):
      found, _ = agent.predict(same, deterministic=True)
      assert np.array_equal(found, expected)
    for wrong in (image - 10.0, image.astype(int) + 1000):
      with pytest.raises(ValueError, match='values from .*; (return|give) val'):
        agent.predict(wrong)


@pytest.mark.parametrize(
  'what', [pytest.param('nested', marks=pytest.mark.slow), 'tuple']
)
def test_other_kinds_of_observations(what, tmp_path):
  """They train, load, and act alone and in batches."""
  logdir, env = str(tmp_path), Sampled(what)
  call = dict(params={**SMALL, 'num_agents': 1}, seed=0, env_processes=False)
  (record,) = agents.train(env, logdir, 8, **call)
  assert record['updates'] == 2 and record['test_return'] == 4
  with agents.load(logdir) as agent:
    assert agent.observation_space == SPACES[what]
    assert agents.evaluate(agent, env, episodes=1).lengths == [4]
    rows = [agent.observation_space.sample() for _ in range(3)]
    batch = batches_lib.stack(rows, agent.observation_space)
    actions, _ = agent.predict(batch, deterministic=True)
    own = [agent.predict(x, deterministic=True)[0] for x in rows]
    assert actions.tolist() == [int(x) for x in own]
    with pytest.raises(errors.UsageError, match='exports agents that observe'):
      agent.export(str(tmp_path / 'exported'))


@pytest.mark.parametrize('what', SPACES)
@pytest.mark.parametrize('convolutions', [False, True])
def test_layout(what, convolutions):
  """All observations have the shape and dtype of the layout."""
  space = SPACES[what]
  if convolutions and not observations.find_images(space):
    pytest.skip('has no image')
  space.seed(0)
  layout = observations.Layout(space, convolutions)
  rows = [layout.convert(space.sample()) for _ in range(3)]
  own = layout.observation_space
  assert all(x.shape == own.shape and x.dtype == own.dtype for x in rows)
  assert own.dtype == (np.uint8 if convolutions else rows[0].dtype)
  assert (rows[0] != rows[1]).any()
  assert spaces.from_plain(spaces.to_plain(space)) == space


def test_parts_reach_the_network():
  """Bytes become images and normalized vectors again."""
  space = SPACES['nested']
  layout = observations.Layout(space, True)
  value = space.sample()
  row = layout.convert(value)
  assert row.dtype == np.uint8 and layout.observation_space.contains(row)
  seen = []

  def network(config, size, parts, length, state=None):
    seen.append(parts)
    return networks.convolutional_categorical(
      config, size, parts, length, state
    )

  config = {**configs.default(), 'network': 'convolutional_categorical'}
  with tf.Graph().as_default():
    policy = policy_lib.Policy(
      row.shape, 2, tf.constant(False), config, None, True, layout.packing
    )
    policy._template = functools.partial(network, policy.config, 2)
    policy._network(tf.constant(row[None, None]), tf.ones([1]))
    policy.observ_filter.update(policy.vector(row[None]))
    kernels = [x for x in tf.trainable_variables() if 'conv2d' in x.name]
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      (image, depth), vector = sess.run(seen[-1])
  camera = value['camera']
  assert (image[0, 0] == camera['rgb']).all()
  scaled = (camera['depth'] + 1) * 255 / 2
  np.testing.assert_allclose(depth[0, 0], scaled, atol=0.51)
  expected = np.clip(value['place'].astype(np.float32), -5, 5)
  np.testing.assert_allclose(vector[0, 0], expected)
  assert kernels


def test_convolutions_need_an_image():
  given = {'env': Sampled('vectors'), 'network': 'convolutional_gaussian'}
  with pytest.raises(errors.UsageError, match='36 x 36 pixels for convol'):
    with runs.claim('default', None, None, given):
      pass


def test_not_of_the_space():
  layout = observations.Layout(SPACES['image and state'], True)
  value = {**SPACES['image and state'].sample(), 'gear': 7}
  with pytest.raises(errors.EnvError, match='Arm returned .* not in its spa'):
    layout.convert(value, 'Arm')
  words = '^NaN observation encountered in Arm'
  with pytest.raises(guard.BadNumber, match=words):
    layout.convert({**value, 'gear': 1, 'place': np.full(2, np.nan)}, 'Arm')
  with pytest.raises(guard.BadNumber, match=words):
    observations.Layout(FLOATS, True).convert(FLOATS.low * np.nan, 'Arm')


@pytest.mark.slow
def test_memory():
  """Observations and episodes are kept as bytes."""
  config = runs.prepare('default', {**SMALL, 'env': Pixels})
  config = attr_dict.AttrDict({**config, 'network': 'convolutional_gaussian'})
  with tf.Graph().as_default():
    env = in_graph_batch_env.InGraphBatchEnv(
      batches.make(config, 2, images=True)
    )
    utility.define_simulation_graph(env, config.algorithm, config)
    kept = [
      tuple(x.shape.as_list())
      for x in tf.global_variables()
      if x.dtype.base_dtype == tf.uint8
    ]
    env.close()
  whole = (2, 4, 40, 36, 3)
  assert sorted(kept) == [whole, whole, (2, 40, 36, 3)]


def test_other_networks(tmp_path):
  """Those that the user chooses stay, as do runs that flattened images."""
  given = {**SMALL, 'env': Pixels, 'network': 'feed_forward_gaussian'}
  with runs.claim('default', str(tmp_path), None, given) as run:
    assert run.config.network == 'feed_forward_gaussian'
    first = run.folder
    runs.store(run)
  del given['network']
  with runs.claim('default', str(tmp_path), None, given) as run:
    assert run.folder == first
    assert run.config.network == 'feed_forward_gaussian'
  assert folder.has(first, 'config.yaml')
  own = {**given, 'network': networks.recurrent_gaussian}
  with runs.claim('default', None, None, own) as run:
    assert not configs.sees_images(run.config)
