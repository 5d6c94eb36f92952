"""Driving is an environment like any other, and PlaNet knows none of it."""

import pathlib
import re
import subprocess
import sys

import pytest

from agents.run import errors, files, references
from planet.scripts import (
  environments,
  parameters,
  renamed,
  resume,
  table,
  train,
)
from tests import golden
from tests.planet.envs.carla.recorded_world import DRIVING

ROOT = pathlib.Path(golden.ROOT)
# Where PlaNet may speak of it.
PLACES = {'scripts/table.py', 'scripts/presets.py', 'scripts/renamed.py'}

TRAIN = """
import sys
from planet.scripts import train
args = ['--logdir', {logdir!r}, '--config', 'debug', '--params',
  '{{tasks: [cartpole_balance], observations: vector, max_steps: 20}}']
assert train.run(args) == 0
print([x for x in sys.modules if 'carla' in x])
"""


def test_only_a_row_presets_and_old_names():
  found = {
    str(path.relative_to(ROOT / 'planet'))
    for path in (ROOT / 'planet').rglob('*.py*')
    if path.suffix in ('.py', '.pyi')
    and 'envs/carla' not in str(path)
    and re.search('(?i)carla|driving|vehicle', path.read_text())
  }
  assert found == PLACES
  lines = (ROOT / 'planet/scripts/table.py').read_text().splitlines()
  assert sum('carla' in x.lower() for x in lines) == 1


@pytest.mark.slow
@pytest.mark.needs('dm_control')
def test_other_trainings_import_none_of_it(tmp_path):
  result = subprocess.run(
    [sys.executable, '-c', TRAIN.format(logdir=str(tmp_path))],
    cwd=ROOT,
    capture_output=True,
    text=True,
  )
  assert result.returncode == 0, result.stdout + result.stderr
  assert result.stdout.splitlines()[-1] == '[]'


def test_old_names_are_settings():
  """All of them, and with today's they cannot be given twice."""
  settings = table.find_settings(['carla'])
  assert set(renamed.NAMES.values()) <= set(settings.names())
  assert not set(renamed.NAMES) & set(parameters.Parameters.names())
  # What earlier versions did not offer.
  assert set(settings.names()) - set(renamed.NAMES.values()) == {
    'camera',
    'early_terminate_on_collision',
    'ego_filter',
    'reward_weights',
  }


def test_old_and_new_names_mean_the_same():
  """Also beside the values of the preset."""
  old = parameters.build(
    'carla_cpu', {'carla_reward': 'custom', 'carla_size': 64, 'max_length': 80}
  )
  new = parameters.build(
    'carla_cpu',
    {'env': {'reward_function': 'custom', 'image_size': 64, 'max_length': 80}},
  )
  assert dict(old) == dict(new)
  assert old.env['map'] == 'loop' and old.image_size == 64
  assert old.network == 'conv_small'


def define(logdir, config='debug', **params):
  args = train.Arguments(config=config, params=params)
  return resume.define_config(str(logdir), args)


def test_old_names_are_explained(tmp_path):
  (line,) = define(tmp_path, tasks=['carla'], carla_map='loop').report
  assert 'carla_map are settings of the environment now, env: {map}' in line
  (line,) = define(tmp_path, tasks=['dummy'], carla_map='loop').report
  assert 'carla_map have no effect' in line
  assert not define(tmp_path, tasks=['carla'], env={'map': 'loop'}).report


def test_stored_runs_of_driving(tmp_path):
  """Their parameters, their world, and what they cannot change."""
  stored = files.read_yaml(str(ROOT / 'results/agents/carla_loop/config.yaml'))
  assert 'carla_map' in stored['values']
  stored['params'] = {'carla_port': 2005, 'free_nats': 2.0}
  files.write_yaml(str(tmp_path / 'config.yaml'), stored)
  config = define(tmp_path, 'carla_cpu', carla_host='there')
  source = config.source
  assert source.chosen == {'backend': 'offline'}
  assert source.params['env'] == {'port': 2005, 'host': 'there'}
  assert source['values']['env']['reward_scale'] == 0.2
  assert not [x for x in source['values'] if 'carla' in x]
  settings = config.tasks[0].settings
  assert (settings['port'], settings['map']) == (2005, 'loop')
  with pytest.raises(errors.UsageError, match='env.map: loop -> grid .it chan'):
    define(tmp_path, 'carla_cpu', carla_map='grid')
  with pytest.raises(errors.UsageError, match='started with backend: offline'):
    environments.prepare(
      define(tmp_path, 'carla_cpu', env={'backend': 'server'}), ''
    )


def test_stored_runs_of_other_tasks(tmp_path):
  """Earlier versions stored parameters of driving in all of them."""
  name = 'planet_cartpole_swingup'
  stored = files.read_yaml(str(ROOT / f'results/agents/{name}/config.yaml'))
  assert 'carla_map' in stored['values']
  files.write_yaml(str(tmp_path / 'config.yaml'), stored)
  config = define(tmp_path, stored['config'])
  assert not config.source['values']['env']
  assert 'carla' not in ' '.join(config.report)
  assert config.image_size == 64 and not config.unused


def test_files_may_name_it():
  """It is of this project, unlike modules of the user."""
  references.check_env_id(DRIVING, references.NOTHING)
  for other in ('planet.scripts.train:run', 'planetary:Driving-v0'):
    with pytest.raises(references.NotTrusted):
      references.check_env_id(other, references.NOTHING)
