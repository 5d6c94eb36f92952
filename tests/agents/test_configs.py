"""Configurations of PPO, and their way through `config.yaml`."""

import functools

import pytest

from agents import configs, networks, ppo, utility
from agents.envs import minitaur
from agents.tools import AttrDict
from agents.tools.tf1 import tf

MINITAUR = dict(
  accurate_motor_model_enabled=True,
  motor_overheat_protection=True,
  pd_control_enabled=True,
  env_randomizer=minitaur.minitaur_randomizer,
  render=False,
)
ENVS = {
  'pybullet_pendulum': ('InvertedPendulumBulletEnv-v0', 200, 5e7),
  'pybullet_doublependulum': ('InvertedDoublePendulumBulletEnv-v0', 1000, 5e7),
  'pybullet_pendulumswingup': (
    'InvertedPendulumSwingupBulletEnv-v0',
    1000,
    5e7,
  ),
  'pybullet_cheetah': ('HalfCheetahBulletEnv-v0', 1000, 1e8),
  'pybullet_ant': ('AntBulletEnv-v0', 1000, 5e7),
  'pybullet_kuka_grasping': ('KukaBulletEnv-v0', 1000, 1e7),
  'pybullet_racecar': ('RacecarBulletEnv-v0', 10, 1e7),
  'pybullet_humanoid': ('HumanoidBulletEnv-v0', 1000, 3e8),
  'pybullet_minitaur': (dict(MINITAUR, duck=False), 1000, 3e7),
  'pybullet_duck_minitaur': (dict(MINITAUR, duck=True), 1000, 3e7),
}
RANDOMIZED = (
  'pybullet_humanoid',
  'pybullet_minitaur',
  'pybullet_duck_minitaur',
)


def test_cartpole():
  own = dict(
    env='CartPole-v1',
    network=networks.feed_forward_categorical,
    max_length=500,
    steps=2e5,
  )
  assert configs.cartpole() == {**configs.default(), **own}


@pytest.mark.parametrize('name', ENVS)
def test_environments(name):
  """Environment, length and steps; the rest is the default."""
  config, default = getattr(configs, name)(), configs.default()
  env, max_length, steps = ENVS[name]
  if isinstance(env, dict):
    assert isinstance(config['env'], functools.partial)
    assert config['env'].keywords == env
  else:
    assert config['env'] == env
  assert (config['max_length'], config['steps']) == (max_length, steps)
  own = ('env', 'max_length', 'steps', 'randomizer')
  rest = [
    {k: v for k, v in x.items() if k not in own} for x in (config, default)
  ]
  assert rest[0] == rest[1]
  if name in RANDOMIZED:
    assert config['randomizer'] is minitaur.minitaur_randomizer
  else:
    assert 'randomizer' not in config


def test_default():
  """The numbers of the original."""
  config = configs.default()
  assert config['algorithm'] is ppo.PPOAlgorithm
  assert config['network'] is networks.feed_forward_gaussian
  assert config['optimizer'] is tf.train.AdamOptimizer
  expected = dict(
    num_agents=30,
    eval_episodes=30,
    use_gpu=False,
    policy_layers=(200, 100),
    value_layers=(200, 100),
    init_mean_factor=0.1,
    init_logstd=-1,
    update_every=30,
    update_epochs=25,
    update_epochs_policy=64,
    update_epochs_value=64,
    learning_rate=1e-4,
    discount=0.995,
    kl_target=1e-2,
    kl_cutoff_factor=2,
    kl_cutoff_coef=1000,
    kl_init_penalty=1,
  )
  assert {key: config[key] for key in expected} == expected
  for key in ('gae_lambda', 'train_on_agent_action', 'logdir', 'env'):
    assert key not in config


@pytest.mark.parametrize(
  'name', ['pybullet_pendulum', 'pybullet_duck_minitaur']
)
def test_storing(tmp_path, name):
  """What is read again is locked, and its functions can be called."""
  config = AttrDict(getattr(configs, name)())
  utility.save_config(config, str(tmp_path))
  loaded = utility.load_config(str(tmp_path))
  assert loaded.logdir == str(tmp_path)
  for key in ('algorithm', 'network', 'optimizer'):
    assert loaded[key] is config[key]
  assert list(loaded.policy_layers) == list(config.policy_layers)
  if name == 'pybullet_duck_minitaur':
    assert loaded.env.func is config.env.func
    assert loaded.env.keywords == config.env.keywords
    assert loaded.randomizer is config.randomizer
    text = (tmp_path / 'config.yaml').read_text()
    for key, value in MINITAUR.items():
      if not callable(value):
        assert f'    {key}: {str(value).lower()}\n' in text
    assert text.count('agents.envs.minitaur:minitaur_randomizer') == 2
  assert loaded.weight_summaries == config.weight_summaries
  with pytest.raises(RuntimeError):
    loaded.steps = 1


def test_missing_and_damaged_files(tmp_path):
  for logdir in (None, str(tmp_path)):
    with pytest.raises(IOError, match='Cannot resume'):
      utility.load_config(logdir)
  for text in ('a: [', '- 1', 'network: {reference: "agents.networks:gone"}'):
    (tmp_path / 'config.yaml').write_text(text)
    with pytest.raises(ValueError, match='Cannot read .*config.yaml'):
      utility.load_config(str(tmp_path))
