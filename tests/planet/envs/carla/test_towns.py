"""The carla task: towns, files of scenarios, and where logs go."""

import numpy as np
import pytest

from agents.run import errors
from tests.planet.envs.carla.test_task import OFFLINE, define, find_config

pytest.importorskip('carla')


def test_runs_keep_the_scenarios_of_files(tmp_path):
  """As they were; another content is another task."""
  from planet.scripts import resume, train
  from planet.training import utility

  path, logdir = tmp_path / 'mine.yaml', str(tmp_path)
  path.write_text('- {name: market, num_vehicles: 2}')
  given = {**OFFLINE, 'carla_size': 32, 'carla_scenario': str(path)}
  args = train.Arguments(config='debug', params=given)
  config = resume.define_config(logdir, args)
  utility.save_config(config, logdir)
  path.write_text('- {name: market, num_vehicles: 5}')
  with pytest.raises(errors.UsageError, match="scenarios: .*'num_vehicl"):
    resume.define_config(logdir, args)
  path.unlink()
  args = train.Arguments(config='debug', params=OFFLINE)
  config = resume.define_config(logdir, args)
  (scenario,) = config.tasks[0].settings['scenarios']
  assert scenario == {'name': 'market', 'num_vehicles': 2}


def find_settings(config):
  return {x.name: find_config(x) for x in config.tasks}


def test_one_town_for_all_scenarios():
  """That of the scenarios, or the one that is given."""
  servers = {'carla_backend': 'server', 'carla_servers': ['a:1', 'b:1']}
  config = define(**servers, carla_scenario={'city': 'Town05'})
  assert find_settings(config)['carla']['server_map'] == 'Town05'
  mixed = ['TOWN1_STRAIGHT', 'TOWN2_STRAIGHT']
  config = define(**servers, carla_scenario=mixed, carla_map='Town02')
  (settings,) = find_settings(config).values()
  assert settings['server_map'] == 'Town02'
  assert [x.name for x in settings['scenarios']] == mixed
  with pytest.raises(errors.UsageError, match='use Town01 and Town02'):
    define(**servers, carla_scenario=mixed)


def test_several_towns():
  """One task each, with all scenarios."""
  config = define(carla_size=32, carla_map=['/Game/Maps/Town03_Opt', 'a.xodr'])
  settings = find_settings(config)
  assert list(settings) == ['carla_Town03', 'carla_a']
  assert [x['map'] for x in settings.values()] == ['grid', 'a.xodr']
  assert len({str(x['scenarios']) for x in settings.values()}) == 1
  assert list(config.train_collects) == [
    'train_main_carla_Town03',
    'train_main_carla_a',
  ]
  config = define(carla_size=32, carla_map=['Town02'])
  assert list(find_settings(config)) == ['carla']


def test_environments_of_several_towns():
  """Alike, so that nothing is hidden from the model, and all offline."""
  config = define(
    carla_map=['loop', 'grid'], carla_size=32, carla_vehicles=0, max_length=20
  )
  maps = []
  for task in config.tasks:
    assert task.state_components == ['reward', 'state']
    env = task.env_ctor()
    assert set(env.reset()) == {'image'}
    maps.append(env.step(np.float32([0, 0]))[3]['map'])
    env.close()
  assert maps == ['loop', 'grid']
  assert config.source.chosen == {'backend': 'offline'}
  config = define(
    carla_map=['loop', 'grid'], carla_size=32, observations='vector'
  )
  assert config.observation_keys == ['state']


@pytest.mark.parametrize(
  'params, message',
  [
    ({'carla_map': ['loop', 'loop']}, 'give each town once'),
    ({'carla_map': ['Town02', 'Town02_Opt']}, 'give each town once'),
    ({'carla_map': []}, 'carla_map'),
  ],
)
def test_towns_that_do_not_fit(params, message):
  with pytest.raises(errors.UsageError, match=message):
    define(**params)


def test_each_environment_needs_a_server(monkeypatch):
  """Two per town; too few are refused before the run begins."""
  monkeypatch.delenv('CARLA_SERVER', raising=False)
  with pytest.raises(errors.UsageError, match='2 env.*rpc-port=2010.*_SERVER'):
    define(carla_backend='server')
  towns = {'carla_map': ['Town01', 'Town02'], 'carla_backend': 'server'}
  servers = ['a:1', 'a:2', 'b:1', 'b:2']
  define(**towns, carla_servers=servers)
  with pytest.raises(errors.UsageError, match='4 environments.*a:1, a:2, b:1'):
    define(**towns, carla_servers=servers[:3])
  with pytest.raises(errors.UsageError, match='3 environments'):
    define(
      carla_backend='server',
      carla_servers=servers[:2],
      train_collects=[{'batch_size': 2}],
    )
  with pytest.raises(errors.UsageError, match="carla_servers.*'a'.*host:port"):
    define(carla_backend='server', carla_servers=['a', 'b:2000'])
  monkeypatch.setenv('CARLA_SERVER', '/bin/true')
  define(**towns)


def test_logs_belong_to_the_run(monkeypatch):
  """Unless another folder is given."""

  def find_folder(**params):
    config = define(carla_size=32, logdir='run', **params)
    return find_config(config.tasks[0])['log_folder']

  monkeypatch.delenv('CARLA_OUT', raising=False)
  logs = {'carla_log_images': True, 'carla_convert_images_to_video': True}
  assert find_folder(**logs, carla_log_measurements=True) == 'run/carla_log'
  assert find_folder(carla_log_folder='here') == 'here'
  monkeypatch.setenv('CARLA_OUT', 'there')
  assert find_folder() is None
