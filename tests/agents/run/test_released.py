"""Runs of the original PPO are read, played and continued."""

import pathlib

import numpy as np
import pytest

import agents
from agents import runs
from agents.run import errors, files, folder, references, released
from agents.tools.tf1 import tf
from tests.docs import small

CONFIG = """\
!!python/object/new:agents.tools.attr_dict.AttrDict
dictitems:
  algorithm: !!python/name:agents.ppo.algorithm.PPOAlgorithm ''
  discount: 0.995
  env: Pendulum-v1
  eval_episodes: 2
  init_logstd: -1
  init_mean_factor: 0.1
  kl_cutoff_coef: 1000
  kl_cutoff_factor: 2
  kl_init_penalty: 1
  kl_target: 0.01
  learning_rate: 0.0001
  max_length: 20
  network: !!python/name:agents.scripts.networks.feed_forward_gaussian ''
  num_agents: 2
  optimizer: !!python/name:tensorflow.python.training.adam.AdamOptimizer ''
  policy_layers: !!python/tuple [4, 3]
  steps: 120.0
  update_epochs: 2
  update_every: 2
  use_gpu: false
  value_layers: !!python/tuple [5]
  weight_summaries: {all: .*, policy: .*/policy/.*, value: .*/value/.*}
state:
  _mutable: false
"""


def name_originally(name):
  """Name of one of our variables in a checkpoint of the original."""
  for ours, theirs in (
    ('/dense', '/fully_connected'),
    ('/kernel', '/weights'),
    ('/bias', '/biases'),
    ('/count', '/Variable'),
    ('/mean', '/Variable_1'),
    ('/var_sum', '/Variable_2'),
    ('penalty/penalty', 'Variable_1'),
    ('optimizer/beta', 'end_episode/cond/cond/training/scan/while/beta'),
  ):
    name = name.replace(ours, theirs)
  return name


@pytest.fixture(scope='module')
def original(tmp_path_factory):
  """A run as the original writes it, and the values of its variables."""
  base = tmp_path_factory.mktemp('original')
  training = agents.train(
    'Pendulum-v1',
    str(base / 'ours'),
    40,
    seed=0,
    params={
      **small.PPO,
      'max_length': 20,
      'policy_layers': [4, 3],
      'value_layers': [5],
    },
  )
  for record in training:
    ours = record['logdir']
  path = runs.folder.checkpoint.find_variables(ours)
  reader = tf.train.NewCheckpointReader(path)
  names = list(reader.get_variable_to_shape_map())
  values = {x: reader.get_tensor(x) for x in names}
  run = base / 'theirs'
  run.mkdir()
  (run / 'config.yaml').write_text(CONFIG)
  with tf.Graph().as_default(), tf.Session() as sess:
    wanted = {}
    for name, value in values.items():
      if name.startswith(('network', 'normalize', 'penalty', 'optimizer')):
        wanted[name_originally(name)] = tf.Variable(value)
    wanted['global_step'] = tf.Variable(np.int32(values['global_step']))
    sess.run(tf.global_variables_initializer())
    saver = tf.train.Saver(wanted)
    saver.save(sess, str(run / pathlib.Path(path).name))
  return ours, str(run)


def test_plays_the_same(original):
  ours, theirs = original
  observation = np.array([[0.3, -0.2, 1.5]], np.float32)
  with agents.load(ours) as one, agents.load(theirs) as other:
    assert one.checkpoint == other.checkpoint
    found = [
      x.predict(observation, deterministic=True)[0] for x in (one, other)
    ]
  np.testing.assert_array_equal(*found)


def test_continues(original, tmp_path):
  """The steps go on, and the settings are stored in this project's format."""
  _, theirs = original
  before = files.read_yaml(f'{theirs}/config.yaml')
  assert before['steps'] == 120 and before['policy_layers'] == [4, 3]
  step = folder.Run(theirs).step
  with runs.claim(None, theirs) as run:
    assert run.step == step > 0 and not run.over
    assert run.config.network == 'feed_forward_gaussian'
    assert run.config.steps == 120
    from agents import train_ppo

    scores = list(train_ppo.train(run.config, False, run=run))
  assert scores and np.isfinite(scores).all()
  assert folder.Run(theirs).step > step
  assert 'python' not in pathlib.Path(theirs, 'config.yaml').read_text()


MINITAUR = """\
!!python/object/new:pybullet_envs.minitaur.agents.tools.attr_dict.AttrDict
dictitems:
  algorithm: !!python/name:pybullet_envs.minitaur.agents.ppo.algorithm.PPOAlgorithm ''
  env: !!python/object/apply:functools.partial
    args:
    - &id001 !!python/name:pybullet_envs.minitaur.envs.minitaur_reactive_env.MinitaurReactiveEnv ''
    state: !!python/tuple
    - *id001
    - !!python/tuple []
    - {motor_kd: 0.015, render: false}
    - null
  network: !!python/name:pybullet_envs.minitaur.agents.scripts.networks.ForwardGaussianPolicy ''
  policy_lr: 0.0002
  policy_optimizer: AdamOptimizer
  update_epochs_policy: 25
  update_every: 25
  value_lr: 0.0003
"""  # noqa: E501


def test_earlier_version():
  found = released.parse(MINITAUR)
  assert found == {
    'version': 1,
    'algorithm': 'PPOAlgorithm',
    'env': 'MinitaurReactiveEnv',
    'env_settings': {'motor_kd': 0.015, 'render': False},
    'network': 'feed_forward_gaussian',
    'learning_rate': 0.0002,
    'optimizer': 'AdamOptimizer',
    'update_epochs': 25,
    'update_epochs_policy': 25,
    'update_every': 25,
  }


def test_python_2_and_later_names():
  text = CONFIG.replace('ppo.algorithm.PPOAlgorithm', 'algorithms.ppo.ppo.PPO')
  for kind, value in (('unicode', 'Pendulum-v1'), ('long', '20')):
    text = text.replace(f': {value}', f": !!python/{kind} '{value}'")
  assert text.count('!!python/') == CONFIG.count('!!python/') + 2
  assert released.parse(text) == released.parse(CONFIG)


@pytest.mark.parametrize(
  'value',
  (
    "!!python/object/apply:os.system ['touch BAD']",
    "!!python/object/new:os.system ['touch BAD']",
    '!!python/object:subprocess.Popen {args: x}',
    "!!python/module:os ''",
    '!!python/object/apply:functools.partial {args: [print]}',
  ),
)
def test_executes_nothing(value, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  text = CONFIG.replace('env: Pendulum-v1', f'env: {value}')
  (tmp_path / 'config.yaml').write_text(text)
  with pytest.raises(errors.UsageError, match=r'Cannot read .*config\.yaml'):
    runs.load(str(tmp_path))
  assert not (tmp_path / 'BAD').exists()


def test_own_network_needs_trust(tmp_path):
  text = CONFIG.replace('agents.scripts.networks.feed', 'theirs.nets.feed')
  (tmp_path / 'config.yaml').write_text(text)
  with pytest.raises(references.NotTrusted, match='--trust theirs.nets'):
    runs.load(str(tmp_path))


@pytest.mark.needs('pybullet')
@pytest.mark.parametrize('name', ('reactive', 'trotting'))
def test_policies_of_the_wheel(name):
  import pybullet_data

  run = pathlib.Path(pybullet_data.__file__).parent
  run = run / 'policies' / 'ppo' / f'minitaur_{name}_env'
  with agents.load(str(run)) as agent:
    env = agent._make_env()
    observation, total = env.reset(), 0
    for _ in range(100):
      action, _ = agent.predict(observation, deterministic=True)
      observation, reward, done, _ = env.step(action)
      total += reward
      assert not done
    env.close()
  # It stands still with zero actions.
  assert total > 0.2


def test_anchors_that_are_used_twice(recwarn):
  """As in the runs of Rex-Gym; an alias means the last one before it."""
  found = released.parse('a: &x [1]\nb: *x\nc: &x [2]\nd: *x\n')
  assert (found['b'], found['d']) == ([1], [2])
  assert not recwarn


def test_settings_of_the_original_planet():
  text = '!!python/object/new:planet.tools.attr_dict.AttrDict\ndictitems: {}\n'
  with pytest.raises(ValueError, match='of the original PlaNet'):
    released.parse(text)
