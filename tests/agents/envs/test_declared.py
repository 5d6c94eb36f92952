"""Settings that environments declare, as PlaNet and PPO use them."""

import argparse

import gymnasium
import numpy as np
import pytest

from agents import check_env, runs
from agents import utility as agents_utility
from agents.envs import adapters, declared
from agents.run import errors, references
from planet.envs.constructors import recording_env
from planet.scripts import evaluate, parameters, resume, tasks, train
from planet.training import collection, utility
from tests.agents.envs import declaring
from tests.agents.envs.declaring import DRIFT
from tests.planet.scripts import training_runs

TASK = f'gym_{DRIFT}'


def define(logdir, config='debug', **params):
  params = {'tasks': [TASK], 'isolate_envs': 'none', **params}
  args = train.Arguments(config=config, params=params)
  return resume.define_config(str(logdir), args)


def start(logdir, **params):
  config = resume.check(define(logdir, **params), str(logdir))
  utility.save_config(config, str(logdir))
  return config


def test_what_declares():
  assert declared.find(DRIFT) is declaring.Settings
  assert declared.find('Drift-v0') is declaring.Settings
  for other in ('Pendulum-v1', 'no:Such-v0', 'no_id', 'os:sep', None, print):
    assert declared.find(other) is None


@pytest.mark.parametrize(
  'params, message',
  [
    ({'env': {'wimd': 1}}, "'wimd' of the environment is unknown.*mean wind"),
    ({'env': {'wind': -1}}, "'wind' of .* is -1: .*greater than or equal to 0"),
    ({'env': {'wind': 10}}, 'too much wind'),
    ({'env': {'initial': True}}, "'initial' of the environment is unknown"),
    ({'env': 3}, "Parameter 'env' is 3"),
    ({'env': {'image_size': 64}, 'image_size': 32}, 'give one of them'),
    ({'env': {'max_length': 5}}, 'too few .* raise env: {max_length: N}'),
    ({'tasks': [TASK, 'carla']}, 'Several environments.*train them apart'),
  ],
)
def test_bad_settings(params, message, tmp_path):
  with pytest.raises(errors.UsageError, match=message):
    define(tmp_path, **params)


def test_settings_reach_the_environment(tmp_path):
  """Size and length are the environment's, and what it was told is true."""
  config = start(
    tmp_path, env={'wind': 2}, action_repeat=2, state_diagnostics=True
  )
  (task,) = config.tasks
  assert (task.max_length, config.image_size) == (10, 32)
  env = task.env_ctor()
  assert env.unwrapped.logdir == str(tmp_path) and env.seconds_to_close == 2.5
  observ, steps, done = env.reset(), 0, False
  assert observ['image'].shape == (32, 32, 1)
  assert observ['state'].tolist() == [2, 0, 0, 2]
  while not done:
    _, _, done, info = env.step(np.float32([0.1]))
    steps += 1
  assert steps == 10 and 'applied_action' not in info
  config = define(tmp_path / 'other', env={'image_size': 64, 'max_length': 30})
  assert config.image_size == 64 and config.tasks[0].max_length == 30
  assert define(tmp_path / 'other', image_size=64).tasks[0].settings == {
    **{**declaring.Settings.defaults(), 'image_size': 64},
    'action_repeat': 1,
  }


def test_initial_episodes(tmp_path):
  """The environment knows them, and its own actions are recorded."""
  config = start(tmp_path, num_seed_episodes=1, state_diagnostics=True)
  collection.collect_initial_episodes(config)
  for phase in ('train', 'test'):
    (path,) = (tmp_path / f'{phase}_episodes').iterdir()
    with np.load(path) as episode:
      assert (episode['action'][1:] == 0.5).all()
      assert (episode['state'][:, 2] == 1).all()


def test_one_task_for_each_value(tmp_path):
  config = start(tmp_path, env={'places': [1, 2]}, state_diagnostics=True)
  names = [x.name for x in config.tasks]
  assert [x[-2:] for x in names] == ['_1', '_2']
  found = [x.env_ctor().reset()['state'][1] for x in config.tasks]
  assert found == [1, 2]
  # They are alike, so the state is not hidden.
  assert config.tasks[0].state_components == ['reward', 'state']


def test_continued_runs(tmp_path):
  """Settings are kept one by one, and what was chosen at the start, too."""
  config = start(tmp_path, env={'wind': 2, 'places': [3]})
  assert config.source.chosen == {'side': '2 times'}
  assert config.source.params['env'] == {'wind': 2, 'places': [3]}
  more = [{}, {'name': 'second'}]
  config = start(tmp_path, env={'places': [4]}, train_collects=more)
  assert config.source.chosen == {'side': '2 times'}
  settings = config.tasks[0].settings
  assert (settings['wind'], settings['places']) == (2, [4])
  assert config.report[0].startswith('env.places: [3] -> [4] (from step 0')
  assert 'Kept from earlier commands: env.wind: 2' in config.report[-1]
  assert config.source.changes[0]['env.places'] == [[3], [4]]
  with pytest.raises(
    errors.UsageError, match=r'env.wind: 2.0 -> 3.0 \(it is the weather\)'
  ):
    define(tmp_path, env={'wind': 3})


def test_settings_without_a_declaration(tmp_path):
  """They are arguments of the constructor, which a run keeps."""
  config = start(
    tmp_path,
    tasks=['gym_Pendulum-v1'],
    observations='vector',
    env={'g': 1.0},
  )
  env = config.tasks[0].env_ctor()
  assert env.unwrapped.g == 1
  assert not config.unused
  with pytest.raises(errors.UsageError, match='env.g: 1.0 -> 2.0'):
    define(
      tmp_path,
      tasks=['gym_Pendulum-v1'],
      observations='vector',
      env={'g': 2.0},
    )
  made = parameters.build('debug', {'tasks': ['gym_Own'], 'env': {'g': 1}})
  with pytest.raises(errors.UsageError, match='given by an id take settings'):
    tasks.define_all(made, gymnasium.make('Pendulum-v1'))
  assert 'env' in define(tmp_path / 'x', tasks=['dummy'], env={'g': 1}).unused


def test_ppo(tmp_path):
  overrides = dict(env=DRIFT, env_settings={'wind': 5}, max_length=20)
  with runs.claim('default', str(tmp_path), None, overrides) as run:
    assert run.config.env_settings == {'wind': 5}
    agents_utility.save_config(run.config)
  config = agents_utility.load_config(run.folder, references.parse(['tests']))
  assert config.env_settings == {'wind': 5}
  with pytest.raises(errors.UsageError, match='env_settings'):
    with runs.claim(None, run.folder, None, {'env_settings': {'wind': 6}}):
      pass
  with pytest.raises(errors.EnvError, match='wimd'):
    overrides['env_settings'] = {'wimd': 1}
    runs.claim('default', None, None, overrides)


def test_check_env(capsys):
  settings = '{image_size: 16, max_length: 7}'
  assert check_env.run([DRIFT, '--settings', settings]) == 0
  found = capsys.readouterr().out
  assert 'images: uint8 [16, 16, 1]' in found and 'episode: 7 steps' in found
  assert check_env.run([DRIFT, '--settings', '3']) == 2


def test_attributes_below_wrappers_of_gymnasium():
  env = adapters.create(DRIFT, 'rgb_array')
  assert env.seconds_to_close == 2.5 and not hasattr(env, 'no_such')


def test_videos_show_what_the_environment_offers():
  """The picture from above, and the text in the info."""

  class Agent:
    task = argparse.Namespace(name='drift')

    def reset(self):
      pass

    def predict(self, unused_observation, **unused):
      return np.float32([0.5]), None

  task = tasks.define(TASK, parameters.build('debug', {'tasks': [TASK]}))
  env = recording_env(task.env_ctor, None, ['image'], 1)
  bar = argparse.Namespace(update=lambda *unused: None)
  episode = evaluate.play_once(Agent(), env, bar, overview=True, number=1)
  assert episode.maps.shape == (20, 9, 9, 3)
  assert episode.captions == ('0.5',) * 20
  assert episode.env_steps == 20
  # Two lines of text.
  assert evaluate.annotate(episode).shape[1:] == (256 + 48, 256 + 256, 3)
  with episode.unlocked:
    episode.captions = (0.5,) * 20
  assert evaluate.annotate(episode).shape[1:] == (256 + 48, 256 + 256, 3)


@pytest.mark.slow
def test_training(tmp_path):
  params = {'tasks': [TASK], 'env': {'wind': 2}, 'isolate_envs': None}
  result = training_runs.train(tmp_path, params)
  assert result.code == 0, result.output
