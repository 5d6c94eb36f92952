"""Configurations of PPO, and their way through `config.yaml`."""

import functools
from unittest import mock

import gymnasium
import numpy as np
import pytest

import agents
import planet.training.utility
from agents import configs, networks, ppo, train_ppo, utility
from agents.run import errors, files, references
from agents.tools import AttrDict, continuous
from agents.tools.tf1 import tf

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
  'pybullet_minitaur': ('minitaur', 1000, 3e7),
  'pybullet_duck_minitaur': ('duck_minitaur', 1000, 3e7),
}


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
  assert config['env'] == env
  assert (config['max_length'], config['steps']) == (max_length, steps)
  own = ('env', 'max_length', 'steps')
  rest = [
    {k: v for k, v in x.items() if k not in own} for x in (config, default)
  ]
  assert rest[0] == rest[1]


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


def test_minitaurs():
  for name, duck in (('minitaur', False), ('duck_minitaur', True)):
    made = mock.Mock(return_value=gymnasium.make('Pendulum-v1'))
    with mock.patch.object(continuous.minitaur, 'minitaur', made):
      continuous.make(name).close()
    assert made.call_args.kwargs == {'duck': duck}


def own_network(config, action_size, observations, length, state=None):
  return networks.feed_forward_gaussian(
    config, action_size, observations, length, state
  )


def make_config(drop=(), **more):
  config = {**configs.default(), 'env': 'Pendulum-v1', **more}
  return AttrDict({k: v for k, v in config.items() if k not in drop})


@pytest.mark.parametrize(
  'config, sentences',
  [
    (
      make_config(['init_mean_factor'], init_output_factor=0.1),
      ['name here is init_mean_factor', 'init_mean_factor is missing'],
    ),
    (
      make_config(normalize_ranges=False, chunk_length=50),
      ["'normalize_ranges' is unknown. Omit it", 'sees whole episodes'],
    ),
    (make_config(discont=0.9), ["'discont' is unknown. Did you mean discount"]),
    (make_config(['env', 'steps']), ['steps, env are missing']),
    (make_config(num_agents='3'), ["'num_agents' is '3': give"]),
    (
      make_config(network=own_network, own_size=3, init_std=0.3),
      ["'init_std' is unknown. Give its logarithm"],
    ),
  ],
)
def test_configurations_of_other_versions(config, sentences):
  """Named before anything begins, in scripts and in the library."""
  with pytest.raises(errors.UsageError) as caught:
    next(train_ppo.train(config, False))
  for sentence in sentences:
    assert sentence in str(caught.value)
  own = {'own_size'} if config['network'] is own_network else set()
  unknown = {*config} - {*configs.Config.names()} - own
  for name in unknown:
    with pytest.raises(errors.UsageError) as caught:
      agents.train('Pendulum-v1', params={name: config[name]})
    assert f'{name!r} is unknown' in str(caught.value)


@pytest.mark.parametrize('name', ['max_length', 'num_agents', 'update_every'])
def test_more_than_the_graph_counts(name):
  config = {**configs.default(), 'env': 'Pendulum-v1', name: 1e12}
  with pytest.raises(errors.UsageError, match=f'{name}.*2147483647'):
    configs.check(config)


def test_names_for_a_network_of_the_user():
  configs.check(make_config(network=own_network, own_size=3, logdir='x'))
  for name in configs.CHOICES:
    configs.check({'env': 'Pendulum-v1', **getattr(configs, name)()})


@pytest.mark.parametrize(
  'settings', [{'a': 3, 'b': [0.5]}, {'a': object()}, {'a': np.zeros(2)}]
)
def test_environments_with_arguments(settings):
  """They are stored by their parts, if a file can hold them."""
  env = functools.partial(own_network, **settings)
  plain = configs.to_plain(make_config(env=env, env_settings={'a': 4}))
  if 'b' in settings:
    assert plain['env'] == f'{__name__}:own_network'
    assert plain['env_settings'] == {'a': 4, 'b': [0.5]}
  else:
    assert plain['env'].startswith('<functools:partial-')
    assert plain['env_settings'] == {'a': 4}


def test_storing(tmp_path):
  """Plain text; what is the user's own needs trust."""
  config = AttrDict(configs.default(), network=own_network, env='Pendulum-v1')
  utility.save_config(config, str(tmp_path))
  stored = files.read_yaml(str(tmp_path / 'config.yaml'))
  assert stored['version'] == 1
  assert stored['network'] == f'{__name__}:own_network'
  with pytest.raises(references.NotTrusted, match='add --trust'):
    utility.load_config(str(tmp_path))
  loaded = utility.load_config(str(tmp_path), references.EVERYTHING)
  assert loaded.logdir == str(tmp_path) and loaded.network is own_network
  assert list(loaded.policy_layers) == list(config.policy_layers)
  assert loaded.weight_summaries == config.weight_summaries
  # Programs of users call them, when they train and when they continue.
  assert loaded.algorithm is config.algorithm is ppo.PPOAlgorithm
  assert loaded.optimizer is config.optimizer is tf.train.AdamOptimizer
  with pytest.raises(RuntimeError):
    loaded.steps = 1


def test_damaged_files(tmp_path):
  with pytest.raises(errors.UsageError, match='no run in'):
    utility.load_config(str(tmp_path))
  for load in (utility.load_config, planet.training.utility.load_config):
    for folder in (str(tmp_path), None):
      # As the programs of the originals ask whether there is a run.
      with pytest.raises(IOError):
        load(folder)
  for text in ('a: [', '- 1'):
    (tmp_path / 'config.yaml').write_text(text)
    with pytest.raises(errors.UsageError, match='Cannot read .*config.yaml'):
      utility.load_config(str(tmp_path))
