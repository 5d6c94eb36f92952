"""Configurations: defaults of the specification and what follows from them."""

import itertools
import os

import numpy as np
import pytest

import planet
from agents.run import files
from agents.run.errors import UsageError
from planet import models, networks
from planet.envs import dummy_env
from planet.scripts import (
  configs,
  environments,
  evaluate,
  objectives,
  parameters,
  resume,
  table,
  tasks,
  train,
)
from planet.tools import AttrDict
from planet.training import utility


def build(name='default', **params):
  params = dict(params, logdir='/logdir')
  config = getattr(configs, name)(AttrDict(), params)
  assert not config.unused
  return config


def test_default():
  """Table of section 3 of the specification."""
  config = build()
  assert config.batch_shape == [50, 50] and config.num_chunks == 1
  assert list(config.loss_scales.items()) == [
    ('reward', 10.0),
    ('divergence', 1.0),
    ('global_divergence', 0.0),
    ('overshooting', 0.0),
    ('image', 1.0),
  ]
  assert config.gradient_heads == ['image', 'reward']
  assert config.free_nats == 3.0 and config.open_loop_context == 5
  assert (config.train_steps, config.test_steps) == (50000, 50)
  assert config.max_steps == int(5e7)
  assert config.train_log_every == 50000
  assert config.train_checkpoint_every is None
  assert config.test_checkpoint_every == 500
  assert config.print_metrics_every == 5000
  assert config.train_dir == '/logdir/train_episodes'
  assert config.test_dir == '/logdir/test_episodes'
  assert config.savers == [{'exclude': ('.*_temporary.*',)}]
  assert config.cell.func is models.RSSM
  assert config.cell.args == (30, 200, 200)
  assert config.data_loader.keywords == {
    'every': 1000,
    'max_bytes': None,
  }
  assert build(loader='scan').data_loader.keywords['max_episodes'] == 500
  main = config.optimizers.main
  assert main.learning_rate == 1e-3 and main.clipping == 1000.0
  assert main.optimizer_cls.keywords == {'epsilon': 1e-4}
  assert config.isolate_envs == 'process' and config.debug is False


@pytest.mark.parametrize('loader', ['cache', 'recent'])
def test_many_small_episodes_are_read_once(loader, tmp_path):
  """Their memory is limited, not their number."""
  for number in range(600):
    (tmp_path / f'{number:03}.npz').touch()
  calls = []

  def read(filename):
    calls.append(filename)
    return {'x': np.zeros(3)}

  loader = build(loader=loader, loader_every=1000).data_loader
  stream = loader(read, str(tmp_path), 4, seed=0)
  list(itertools.islice(stream, 2000))
  assert len(calls) == 600


def test_default_collections():
  config = build()
  assert list(config.random_collects) == [
    'train-cheetah_run',
    'test-cheetah_run',
  ]
  assert config.random_collects['test-cheetah_run'].num_episodes == 5
  train = config.train_collects.train_main_cheetah_run
  test = config.test_collects.test_main_cheetah_run
  assert (train.steps_after, train.steps_every, train.steps_until) == (
    5000,
    5000,
    -1,
  )
  assert train.num_agents == 1 and train.exploration.scale == 0.3
  assert test.exploration is None
  assert train.planner.keywords == {
    'horizon': 12,
    'amount': 1000,
    'topk': 100,
    'iterations': 10,
  }
  (biased,) = build(planner_bias=[0.5]).test_collects.values()
  assert biased.planner.keywords['bias'] == [0.5]


def test_entries_of_collections():
  """Numbers are read as at the top level, where 1e4 is a whole one."""
  entry = dict(after=1e4, every=2e3, until=5e4, horizon=6.0, action_noise=1)
  config = build(train_collects=[entry, dict(name='other', batch_size=2)])
  main, other = config.train_collects.values()
  assert (main.steps_after, main.steps_every, main.steps_until) == (
    10000,
    2000,
    50000,
  )
  assert type(main.horizon) is int and main.exploration.scale == 1
  assert other.num_agents == 2 and other.steps_every == 5000


def test_episodes_at_once():
  """As many per example as one at a time; what an entry says counts."""
  entries = [{}, dict(name='often', every=70), dict(name='wide', batch_size=7)]
  config = build(train_collects=entries, collect_batch=4, collect_every=100)
  collects = [
    (x.num_agents, x.steps_after, x.steps_every)
    for x in config.train_collects.values()
  ]
  assert collects == [(4, 100, 400), (4, 100, 70), (7, 100, 100)]
  (test,) = config.test_collects.values()
  assert (test.num_agents, test.steps_every) == (1, 100)


@pytest.mark.parametrize(
  'entry, message',
  [
    ({'every': 0}, "'every' of train_collects is 0: "),
    ({'after': 1.5}, 'after'),
    ({'after': True}, 'after'),
    ({'action_noise': -1}, 'action_noise'),
    ({'action_noise_min': 2}, 'action_noise_min'),
    ({'name': ''}, "'name' of"),
    ({'objective': 3}, "'objective' of"),
    ({'objective': 'rewards'}, 'give one of reward'),
  ],
)
def test_wrong_entries_of_collections(entry, message):
  with pytest.raises(UsageError, match=message):
    build(train_collects=[entry])


def test_training_on_fixed_data():
  """Without collections nothing is played."""
  config = build(train_collects=[], test_collects=[], num_seed_episodes=0)
  assert not config.train_collects and not config.test_collects
  assert config.random_collects['train-cheetah_run'].num_episodes == 0


def test_debug_and_its_overrides():
  config = build('debug', num_units=7, tasks=['dummy'])
  assert config.debug and config.batch_shape == [5, 10]
  assert config.num_units == 7 and config.max_steps == 500
  assert config.tasks[0].max_length == 20
  # Own environments are tried within a minute.
  assert build('debug', tasks=['gym_a:B-v0']).max_steps == 100
  collect = config.train_collects.train_main_dummy
  assert (collect.steps_after, collect.steps_every) == (10, 10)
  assert config.isolate_envs == 'thread'


def test_settings_of_the_paper():
  config = build(mean_only=True, divergence_scale=0.0)
  assert config.cell.keywords['mean_only'] is True
  assert config.loss_scales.divergence == 0
  config = build(planner_iterations=0, train_action_noise=1.0)
  assert config.train_collects.train_main_cheetah_run.exploration.scale == 1
  assert build(model='ssm').cell.func is models.SSM
  assert build(model='ssm').cell.args == (30, 200)
  assert build(model='drnn').cell.func is models.DRNN


def test_heads():
  config = build(state_diagnostics=True, velocity_loss_scale=2.0)
  assert list(config.heads) == ['image', 'reward', 'position', 'velocity']
  assert config.loss_scales.velocity == 2 and config.loss_scales.position == 1
  assert not config.heads.reward.keywords['stop_gradient']
  assert config.heads.velocity.keywords['stop_gradient']


def own_components(config, params):
  components = ['reward', 'pose']
  return tasks.Task('own', dummy_env.DummyEnv, 1000, components)


def test_heads_of_own_components(tmp_path, monkeypatch):
  """Of a task that the user defines; a run keeps their scales."""
  monkeypatch.setattr(tasks, 'own', own_components, raising=False)
  given = {'tasks': ['own'], 'state_diagnostics': True}
  config = build(**given)
  assert list(config.heads) == ['image', 'reward', 'pose']
  assert config.loss_scales.pose == 1.0
  assert config.heads.pose.keywords['stop_gradient']
  heads = ['image', 'reward', 'pose']
  config = build(**given, pose_loss_scale=2, gradient_heads=heads)
  assert list(config.loss_scales)[:2] == ['reward', 'pose']
  assert config.loss_scales.pose == 2.0
  assert not config.heads.pose.keywords['stop_gradient']
  logdir = str(tmp_path)
  for more, scale in (({'pose_loss_scale': 2}, 2), ({}, 2)):
    args = train.Arguments(params={**given, **more})
    config = resume.define_config(logdir, train.check(args))
    assert config.loss_scales.pose == scale
    utility.save_config(config, logdir)
  args = train.Arguments(logdir, params={'pose_loss_scale': 3})
  config = resume.define_config(logdir, train.check(args))
  assert config.loss_scales.pose == 3
  assert 'pose_loss_scale: 2.0 -> 3.0 (from' in '\n'.join(config.report)


@pytest.mark.parametrize(
  'params, message',
  [
    ({'pos_loss_scale': 2}, 'pos_loss_scale.*unknown. Did you mean pose_loss'),
    ({'pose_loss_scale': -2}, "'pose_loss_scale' is -2"),
    ({'tasks': ['dummy'], 'pose_loss_scale': 2}, 'pose_loss_scale.*unknown'),
    ({'gradient_heads': ['pos']}, 'Did you mean pose'),
  ],
)
def test_components_that_no_task_has(params, message, monkeypatch):
  monkeypatch.setattr(tasks, 'own', own_components, raising=False)
  with pytest.raises(UsageError, match=message):
    build(**{'tasks': ['own'], 'state_diagnostics': True, **params})


def test_components_that_no_environment_has(monkeypatch):
  monkeypatch.setattr(tasks, 'own', own_components, raising=False)
  params = {'tasks': ['own'], 'state_diagnostics': True}
  config = configs.make('default', params)
  with pytest.raises(UsageError, match="but not \\['pose'\\]; add it there"):
    environments.prepare(config, 'unused')


def test_own_components_without_effect(monkeypatch):
  monkeypatch.setattr(tasks, 'own', own_components, raising=False)
  config = configs.make('default', {'tasks': ['own'], 'pose_loss_scale': 2})
  assert config.unused == ['pose_loss_scale']


def slow(state, graph, params):
  """Objective of a user."""


def test_objectives_of_users(tmp_path, monkeypatch):
  """Set on the module, or by their place; for all collections or one."""
  monkeypatch.setattr(objectives, 'slow', slow, raising=False)
  own = [{}, {'name': 'own', 'objective': 'slow'}]
  own.append({'name': 'usual', 'objective': 'reward'})
  place = f'{__name__}:slow'
  for name, found in (('reward', objectives.reward), ('slow', slow)):
    params = {'collect_objective': name, 'train_collects': own}
    params['test_collects'] = [{'objective': place}]
    config = resume.define_config(
      str(tmp_path / name), train.Arguments(params=params)
    )
    collects = [*config.train_collects.values(), *config.test_collects.values()]
    used = [x.objective.func for x in collects]
    assert used == [found, slow, objectives.reward, slow]
    (params,) = collects[0].objective.keywords.values()
    assert params.get('planner_horizon') == params.planner_horizon == 12
    assert params.get('mine', 3) == 3
  logdir = str(tmp_path / 'slow')
  utility.save_config(config, logdir)
  with pytest.raises(UsageError, match='--trust'):
    resume.define_config(logdir, train.Arguments())
  trusted = train.Arguments(trust=__name__)
  assert resume.define_config(logdir, trusted).train_collects
  monkeypatch.delattr(objectives, 'slow')
  with pytest.raises(UsageError, match="'slow': give one of reward"):
    resume.define_config(logdir, trusted)
  monkeypatch.setattr(objectives, 'slow', lambda state: None, raising=False)
  with pytest.raises(UsageError, match='that takes 3 arguments: state, graph'):
    resume.define_config(logdir, trusted)


def test_networks_and_activations_of_users(monkeypatch):
  """Set on the modules of this project; other names are refused."""

  class Net:
    encoder = staticmethod(lambda obs: None)
    decoder = staticmethod(lambda state, data_shape: None)

  params = {'network': 'my_net', 'activation': 'mish', 'image_size': 32}
  monkeypatch.setattr(networks, 'my_net', Net, raising=False)
  monkeypatch.setitem(configs.ACTIVATIONS, 'mish', slow)
  config = build(**params)
  assert config.encoder is Net.encoder
  assert config.decoder is config.heads.image is Net.decoder
  assert config.activation is slow
  assert config.heads.reward.keywords['activation'] is slow
  monkeypatch.delitem(configs.ACTIVATIONS, 'mish')
  with pytest.raises(UsageError, match="'mish' is unknown"):
    build(**params)
  for name in ('my_nets', 'vector', 'feed_forward', 5):
    with pytest.raises(UsageError, match='give one of conv_ha'):
      build(network=name)


@pytest.mark.parametrize('size', [32, 64, 96, 128])
def test_networks_of_image_sizes(size):
  """Encoders end at 1024 features, decoders at the size they began with."""
  from agents.tools.tf1 import tf

  config = build(image_size=size)
  image = tf.zeros([2, 3, size, size, 3])
  assert config.encoder({'image': image}).shape == (2, 3, 1024)
  dist = config.heads.image(tf.zeros([2, 3, 9]), data_shape=[size, size, 3])
  assert dist.mean().shape == (2, 3, size, size, 3)
  assert dist.event_shape == (size, size, 3)


def test_every_parameter_has_an_effect():
  """With some model or task; others are named for those that it has none."""
  values = {
    name: default
    for name, default in parameters.Parameters.defaults().items()
    if default is not None and not name.endswith('_loss_scale')
  }
  driving = dict(
    tasks=['carla'], carla_backend='offline', carla_size=64, action_repeat=1
  )
  unused = [
    set(configs.default(AttrDict(), dict(values, **changes)).unused)
    for changes in (
      dict(model='rssm', env={'g': 1}),
      dict(model='ssm', overshooting_scale=1.0, overshooting_distance=2),
      dict(model='drnn', loader='scan', action_noise_ramp=9),
      driving,
    )
  ]
  assert set.intersection(*unused) == {'bound_action'}
  assert 'future_rnn' in unused[1] and 'drnn_sample_to_sample' in unused[0]
  assert 'env' in unused[0] and 'camera_id' in unused[3]


def test_phases_without_steps():
  with pytest.raises(UsageError, match='train_steps and test_steps are both 0'):
    build(train_steps=0, test_steps=0)


def test_all_losses_of_tasks_have_scales():
  """Also those that only exist with `state_diagnostics`."""
  for name in ['dummy', 'carla', *table.TABLE]:
    params = AttrDict(tasks=[name], carla_backend='offline')
    config = configs.default(AttrDict(), params)
    for component in config.tasks[0].state_components:
      assert f'{component}_loss_scale' in parameters.Parameters.names()


def test_every_default_passes_its_own_check():
  declared = parameters.Parameters
  for name, default in declared.defaults().items():
    assert declared.check({name: default}) == {name: default}


def test_misspelt_names_of_the_configuration_are_errors(tmp_path):
  """At every level."""
  args = train.Arguments(config='debug', params={'tasks': ['dummy']})
  config = resume.define_config(str(tmp_path), args)
  for level, name, nearest in (
    (config, 'free_nat', 'free_nats'),
    (config.loss_scales, 'rewards', 'reward'),
    (config.optimizers.main, 'cliping', 'clipping'),
    (config.train_collects.train_main_dummy, 'step_every', 'steps_every'),
    (config.random_collects['test-dummy'], 'tasks', 'task'),
    (config.source, 'param', 'params'),
  ):
    with pytest.raises(AttributeError, match=f'Did you mean {nearest}'):
      getattr(level, name)
    with pytest.raises((AttributeError, KeyError), match=name):
      _ = level[name]


@pytest.mark.parametrize(
  'params, network',
  [
    ({}, 'conv_small'),
    ({'image_size': 32}, 'conv_32'),
    ({'tasks': ['carla'], 'carla_size': 96}, 'conv_96'),
    ({'network': 'conv_ha'}, 'conv_ha'),
  ],
)
def test_network_of_small_machines(params, network):
  """The narrow one only where images have its size."""
  from planet import networks

  config = build('cpu', **params)
  assert config.encoder is getattr(networks, network).encoder
  assert config.train_steps == 3 * 1280


def test_two_episodes_at_once_on_two_cores():
  """As often as the parameters say, each with a planner of its own."""
  main, second = build('cpu', collect_every=70).train_collects.values()
  assert main.num_agents == second.num_agents == 1
  assert main.steps_every == second.steps_every == 70


@pytest.mark.parametrize(
  'params, network, size',
  [
    ({}, 'conv_32_small', 32),
    ({'carla_size': 64}, 'conv_small', 64),
    ({'image_size': 96}, 'conv_96', 96),
  ],
)
def test_driving_on_small_machines(params, network, size):
  """A hundred steps in the offline world, small images, a small network."""
  config = build('carla_cpu', **params)
  (task,) = config.tasks
  assert (task.name, task.action_repeat, task.max_length) == ('carla', 2, 50)
  settings = task.env_ctor.keywords['settings']
  assert (settings['backend'], settings['map']) == ('offline', 'loop')
  assert config.image_size == size
  assert config.encoder is getattr(networks, network).encoder
  assert config.gradient_heads == ['image', 'reward', 'state']


def mine(config, params):
  """Configuration in the form of the original."""
  with params.unlocked:
    params.tasks = ['dummy']
    params.train_steps = params.get('train_steps', 30)
  config = configs.debug(config, params)
  config.debug = True
  config.max_steps = 20
  return config


def test_functions(tmp_path, monkeypatch):
  """Runs keep what functions of users set, and need them no more."""
  monkeypatch.setattr(configs, 'mine', mine, raising=False)
  logdir = str(tmp_path / 'run')
  for name in ('mine', f'{__name__}:mine'):
    args = train.check(
      train.Arguments(config=name, params={'planner_amount': 7})
    )
    config = resume.define_config(logdir, args)
    assert config.debug and config.planner_amount == 7
    assert config.train_steps == 30 and config.max_steps == 20
    assert config.batch_shape == [5, 10]
    assert [x.name for x in config.tasks] == ['dummy']
  utility.save_config(config, logdir)
  args = train.check(train.Arguments(config='debug', params={'max_steps': 40}))
  config = resume.define_config(logdir, args)
  assert config.train_steps == 30 and config.max_steps == 40
  again = train.Arguments(config='mine', params={'train_steps': 50})
  config = resume.define_config(logdir, train.check(again))
  assert config.train_steps == 50 and config.max_steps == 20


@pytest.mark.slow
def test_a_function_trains(tmp_path):
  """By its name in a command; to play, nobody needs it."""
  logdir = str(tmp_path)
  name = f'{__name__}:mine'
  args = ['--logdir', logdir, '--config', name, '--params', '{train_steps: 10}']
  assert train.run(args) == 0
  stored = files.read_yaml(str(tmp_path / '00001/config.yaml'))
  assert stored['config'] == 'debug' and stored['params']['max_steps'] == 20
  assert evaluate.run(['--logdir', logdir, '--episodes', '1']) == 0


@pytest.mark.parametrize('env', [None, dummy_env.DummyEnv])
def test_functions_with_objects_of_python(env, tmp_path, monkeypatch):
  """They get what callers pass, and may add more."""

  def own(config, params):
    assert params.model is models.SSM
    params.planner = lambda *args: args
    return configs.debug(config, params)

  monkeypatch.setattr(configs, 'own', own, raising=False)
  passed = []
  monkeypatch.setattr(train, 'train_experiment', passed.append)
  params = {'model': models.SSM}
  planet.train(env, str(tmp_path), config='own', params=params)
  (args,) = passed
  names = set(args.objects) - {'tasks'}
  assert args.config == 'debug' and names == {'model', 'planner'}
  assert args.objects.get('tasks') is env


@pytest.mark.parametrize('name', ['new', 'begun'])
def test_functions_know_the_folder(name, tmp_path, monkeypatch):
  """Of a new run, in an experiment, or of a run that has begun."""
  (tmp_path / 'begun').mkdir()
  (tmp_path / 'begun/config.yaml').touch()
  found = []

  def own(config, params):
    found.append((params.logdir, params.get('logdir')))
    return configs.debug(config, params)

  monkeypatch.setattr(configs, 'own', own, raising=False)
  logdir = str(tmp_path / name)
  args = train.check(train.Arguments(logdir, 'own', {'tasks': ['dummy']}))
  run = logdir if name == 'begun' else os.path.join(logdir, '00001')
  assert found == [(run, run)] and 'logdir' not in args.params


@pytest.mark.parametrize(
  'change, message',
  [
    (lambda x: x.update(encoder=None), 'changes encoder of config'),
    (lambda x: x.loss_scales.unlock(), None),
    (
      lambda x: x.loss_scales.update(reward=2.0),
      'changes loss_scales of config',
    ),
    (lambda x: x.update(max_steps='many'), "max_steps.*'many'"),
    (lambda x: x.clear(), 'returns AttrDict; return the result of'),
  ],
)
def test_functions_that_change_more_than_parameters(
  change, message, monkeypatch
):
  def own(config, params):
    config = configs.default(config, params)
    config.loss_scales.unlock()
    change(config)
    return config

  monkeypatch.setattr(configs, 'own', own, raising=False)
  args = train.Arguments(config='own')
  if message is None:
    assert train.check(args).config == 'default'
  else:
    with pytest.raises(UsageError, match=message):
      train.check(args)
