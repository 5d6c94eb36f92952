"""DDPG on the pendulum, from the command line to the files."""

import json
import os

import pytest

from agents.pipeline import env_config, main
from agents.pipeline.params import ddpg_pendulum
from agents.run import errors
from tests import processes
from tests.agents.pipeline.test_session import load

FAST = {
  'number_epochs': 2,
  'epoch_size': 100,
  'test_interval': 1,
  'test_win_size': 2,
  'num_workers': 2,
  'memory_size_in_chunks': 150,
  'save_interval': 1,
}


def run(*args, seconds=300):
  return processes.run_python('-m', 'scripts.main', *args, seconds=seconds)


def read_lines(path):
  with open(path) as file_:
    return [json.loads(line) for line in file_]


def test_tree_is_plain_and_knows_the_spaces():
  """What the environment looks like decides the sizes of the agent."""
  tree = ddpg_pendulum.gen_params(ddpg_pendulum.cpanel)
  assert json.loads(json.dumps(tree)) == tree
  args = tree['agents']['agent']['args']
  assert args['action_space'] == {
    'typ': 'Box',
    'dim': [1],
    'lim': [[-2.0], [2.0]],
  }
  assert args['observation_space']['dim'] == [3]
  assert tree['env']['config']['max_episode_steps'] == 200
  assert tree['explorer']['test']['args']['seed'] == 200


def test_every_key_of_the_panel_is_used():
  """No knob without an effect on the tree."""

  class Watched(dict):
    seen = set()

    def __getitem__(self, key):
      self.seen.add(key)
      return super().__getitem__(key)

  ddpg_pendulum.gen_params(Watched(ddpg_pendulum.cpanel))
  assert Watched.seen == set(ddpg_pendulum.cpanel)


def test_wrong_values_are_refused():
  without = ddpg_pendulum.gen_params({**ddpg_pendulum.cpanel, 'seed': None})
  assert without['explorer']['train']['args']['seed'] is None
  with pytest.raises(errors.UsageError, match="'batch_size' is 0"):
    ddpg_pendulum.gen_params({**ddpg_pendulum.cpanel, 'batch_size': 0})
  unknown = {**ddpg_pendulum.cpanel, 'model_name': 'Pendulm-v1'}
  with pytest.raises(errors.UsageError, match='Pendulum-v1'):
    ddpg_pendulum.gen_params(unknown)


def test_spaces_are_described():
  """By paths, with plain data, from a process of its own."""
  found = env_config.inspect(
    {'constructor': 'tests.agents.pipeline.toy_envs.TwoAgentsEnv'}
  )
  assert set(found['observation_space']) == {'hand/left', 'hand/right', 'time'}
  assert found['action_space']['right']['dim'] == [2]
  assert found['max_episode_steps'] is None
  found = env_config.inspect({'name': 'CartPole-v1'})
  assert found['action_space'] == {
    'agent': {'typ': 'Discrete', 'dim': 2, 'lim': None}
  }


@pytest.mark.slow
def test_train_resume_play(tmp_path):
  """A whole run: two epochs, two more, a video."""
  path = tmp_path / 'one'
  start = ['--session-path', str(tmp_path), '--session-name', 'one']
  params = ['--params', 'agents.pipeline.params.ddpg_pendulum']
  run(*params, *start, '--cpanel', json.dumps(FAST))
  assert sorted(os.listdir(path / 'monitor')) == ['test', 'train']
  more = ['--repeal', '{"runner.n_epochs": 4}']
  output = run('--load-checkpoint', str(path), '--resume', *more)
  assert 'Finished after 4 epochs' in output
  rows = read_lines(path / 'varlog.json')
  frames = [
    x['meta']['frame'] for x in rows if '/update/loss_critic' in x['data']
  ]
  assert frames == [200, 400, 600, 800]
  scores = [x for x in rows if '/reward/test/episodic' in x['data']]
  assert len(scores) == 4
  assert all(x['data']['/reward/test/episodic']['num'] == 2 for x in scores)
  scopes = [x['data'] for x in read_lines(path / 'prolog.json')]
  assert all(x['/train/envstep']['occurs'] == 100 for x in scopes)
  # At first there are too few data; resuming brings the memory back.
  trained = [x['/update/agent/graph']['occurs'] for x in scopes]
  assert trained == [100 - 32, 100, 100, 100]
  assert load(path, '--play', '--play-episodes', '1') == 0
  videos = path.glob('evaluations/*/videos/0/episode-00001.*')
  assert len(list(videos)) == 1


REWARD = {'name': 'gymnasium.wrappers.TransformReward', 'args': {'func': 'x'}}


@pytest.mark.parametrize(
  'mode, changes, code, reason',
  [
    ('test', {'normalize_observations': True}, 2, 'do not both'),
    (
      'train',
      {'env': {'name': 'Pendulum-v1', 'wrappers': [REWARD]}},
      1,
      'failed in step 1 with TypeError',
    ),
  ],
)
def test_what_the_first_epoch_would_refuse(
  mode, changes, code, reason, tmp_path, monkeypatch, capsys
):
  """Refused before training, without a folder."""
  tree = ddpg_pendulum.gen_params({**ddpg_pendulum.cpanel, 'epoch_size': 1})
  tree['explorer'][mode]['args'].update(changes)
  monkeypatch.setattr(ddpg_pendulum, 'gen_params', lambda cpanel: tree)
  flags = ['--params', 'agents.pipeline.params.ddpg_pendulum']
  flags += ['--session-path', str(tmp_path), '--no-monitor-cpu']
  assert main.entrypoint(flags) == code
  assert reason in capsys.readouterr().err
  assert os.listdir(tmp_path) == ['__init__.py']
