"""Parameters of PPO, and a session that is run with them."""

import contextlib
import json
import os

import numpy as np
import pytest

from agents import configs, runs
from agents.pipeline import env_config, logs, session
from agents.pipeline.params import ppo_cheetah, ppo_pendulum
from agents.run import errors, files, references
from agents.tools import AttrDict
from tests import processes
from tests.agents import batches

MODULES = {'pybullet_pendulum': ppo_pendulum, 'pybullet_cheetah': ppo_cheetah}


@pytest.mark.needs('pybullet')
@pytest.mark.parametrize('name', MODULES)
def test_values_are_those_of_the_configuration(name, tmp_path):
  """Nothing is copied; the tree is plain data and survives YAML."""
  module, config = MODULES[name], getattr(configs, name)()
  tree = module.gen_params(module.cpanel)
  policy = tree['agents']['agent']['policy']['args']
  stored = configs.to_plain(config)
  del stored['version']
  assert policy['config'] == {**stored, 'logdir': None}
  path = str(tmp_path / 'params.yaml')
  files.write_yaml(path, tree)
  assert files.read_yaml(path) == tree
  assert tree['env']['name'] == config['env']
  sampler = tree['agents']['agent']['sampler']['args']
  assert sampler['count'] == config['update_every']
  train, test = (tree['explorer'][x]['args'] for x in ('train', 'test'))
  assert train['n_episodes'] == config['update_every']
  assert test['n_episodes'] == config['eval_episodes']
  assert train['num_workers'] == test['num_workers'] == config['num_agents']


@pytest.mark.needs('pybullet')
def test_environment_is_that_of_the_original():
  """The wrappers give the numbers of the stand-alone training."""
  tree = ppo_pendulum.gen_params(ppo_pendulum.cpanel)
  config = configs.pybullet_pendulum()
  ours = env_config.make(tree['env'])
  theirs = batches.make(AttrDict(config), 1, seed=3)
  ours.seed(3)
  np.testing.assert_array_equal(ours.reset(), theirs.reset()[0])
  random = np.random.default_rng(0)
  for _ in range(4):
    action = 2 * random.normal(size=1).astype(np.float32)
    for x, y in zip(ours.step(action)[:3], theirs.step(action[None])[:3]):
      np.testing.assert_array_equal(x, y[0])
      assert np.asarray(x).dtype == y.dtype


@pytest.mark.parametrize('name', ['picture', 'state_and_picture', 'choices'])
def test_other_observations(name):
  """The network gets the same as in the stand-alone training."""
  env = f'tests.agents.pipeline.toy_envs:{name}'
  own = {'config': 'default', 'model_name': env, 'ppo': {'max_length': 20}}
  tree = ppo_pendulum.gen_params({**ppo_pendulum.cpanel, **own})
  given = {'env': env, 'max_length': 20}
  config, layout = runs.prepare_for('default', given)
  images = configs.sees_images(config)
  assert images == (name != 'choices')
  node = tree['agents']['agent']
  assert node['policy']['args']['config'] == references.to_plain(config)
  assert ('packing' in node['args']) == (name == 'state_and_picture')
  ours = env_config.make(tree['env'])
  ours.seed(3)
  with contextlib.closing(
    batches.make(config, 1, seed=3, images=images)
  ) as theirs:
    first = ours.reset()
    assert list(first.shape) == node['args']['observation_space']['dim']
    np.testing.assert_array_equal(first, theirs.reset()[0])
    for x, y in zip(ours.step([0.3])[:3], theirs.step([[0.3]])[:3]):
      np.testing.assert_array_equal(x, y[0])
      assert np.asarray(x).dtype == y.dtype


@pytest.mark.needs('pybullet')
def test_overrides():
  cpanel = session.update_cpanel(
    ppo_pendulum.cpanel,
    {
      'model_name': 'InvertedDoublePendulumBulletEnv-v0',
      'gamma': 0.9,
      'num_workers': 2,
      'ppo': {'network': 'recurrent_gaussian', 'max_length': 50},
    },
  )
  tree = ppo_pendulum.gen_params(cpanel)
  assert tree['runner']['test_act']
  cpanel['ppo']['eval_episodes'] = 0
  runner = ppo_pendulum.gen_params(cpanel)['runner']
  assert not runner['test_act'] and runner['score'] == '/reward/train/episodic'
  config = tree['agents']['agent']['policy']['args']['config']
  assert config['discount'] == 0.9
  assert config['network'] == 'recurrent_gaussian'
  assert tree['agents']['agent']['args']['observation_space']['dim'] == [9]
  assert tree['env']['wrappers'][0]['args'] == {'duration': 50}
  assert tree['explorer']['train']['args']['num_workers'] == 2


@pytest.mark.parametrize(
  'given, words',
  [
    ({'config': 'pybullet_pendul'}, 'pybullet_pendulum'),
    ({'ppo': {'learning_rat': 1}}, 'learning_rate'),
    ({'gamma': 'high'}, 'discount'),
    ({'ppo': {'steps': 9}}, "'steps' in key 'ppo' .* 'number_epochs' instead"),
    ({'config': 'pybullet_minitaur'}, 'id'),
    ({'model_name': 'Pendul-v1'}, 'Pendulum-v1'),
  ],
)
def test_mistakes(given, words):
  cpanel = session.update_cpanel(ppo_pendulum.cpanel, given)
  with pytest.raises(errors.UsageError, match=words):
    ppo_pendulum.gen_params(cpanel)


@pytest.mark.slow
@pytest.mark.needs('pybullet')
@pytest.mark.parametrize(
  'env',
  [
    '',
    '"config": "default", "model_name": "CartPole-v1", ',
    '"config": "default", '
    '"model_name": "tests.agents.pipeline.toy_envs:state_and_picture", ',
  ],
)
def test_session(env, tmp_path):
  """Train, resume and play with the command line; exit code 0."""
  small = (
    f'{{{env}"number_epochs": 2, '
    '"epoch_size": 1, "n_episodes": 2, "num_workers": 2, '
    '"n_update": 2, "max_exec_iter": 1, "env_processes": 0, '
    '"ppo": {"eval_episodes": 2, "policy_layers": [5], "max_length": 20}}'
  )
  path = os.path.join(tmp_path, 'small')
  run = ('-m', 'scripts.main')
  quiet = ('--no-monitor-cpu', '--no-monitor-gpu')
  params = ('--params', 'agents.pipeline.params.ppo_pendulum')
  place = ('--session-path', str(tmp_path), '--session-name', 'small')
  processes.run_python(*run, *params, '--cpanel', small, *place, *quiet)
  trust = ('--trust', 'tests.agents.pipeline.toy_envs')
  load = ('--load-checkpoint', path, *trust)
  output = processes.run_python(*run, *load, '--resume', *quiet)
  assert 'epoch 2' in output
  for name in ('checkpoint-0', 'checkpoint-1', 'checkpoint-2'):
    assert os.path.exists(os.path.join(path, 'checkpoints', name, 'COMPLETE'))
  for name in ('done.lock', 'params.yaml', 'cpanel.json', 'varlog.json'):
    assert os.path.exists(os.path.join(path, name)), name
  output = processes.run_python(
    *run, *load, '--play', '--play-episodes', '1', '--dry-run', *quiet
  )
  assert 'eval return' in output


@pytest.mark.slow
def test_discrete_actions_are_learned(tmp_path):
  """CartPole is held for 150 of at most 200 steps within eight epochs."""
  panel = {
    'config': 'default',
    'model_name': 'CartPole-v1',
    'number_epochs': 8,
    'epoch_size': 3,
    'num_workers': 8,
    'n_episodes': 16,
    'ppo': {'eval_episodes': 8, 'max_length': 200},
  }
  params = '--params', 'agents.pipeline.params.ppo_pendulum'
  place = '--session-path', str(tmp_path), '--session-name', 'pole'
  more = '--cpanel', json.dumps(panel), '--no-monitor-gpu'
  processes.run_python('-m', 'scripts.main', *params, *place, *more)
  found = logs.read(str(tmp_path / 'pole' / 'varlog.json'))
  scores = found['/reward/train/episodic']
  means = scores['sum'] / scores['num']
  assert means[0] < 60 and means[-1] > 150, means
