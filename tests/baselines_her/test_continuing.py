"""What may differ when a run is continued, checked without training it."""

import os
import re

import numpy as np
import pytest

from agents.run import checkpoint, errors, flags
from agents.run import folder as run_folder
from baselines_her import (
  config,
  demonstrations,
  envs,
  library,
  play,
  reports,
  settings,
)
from baselines_her import run as run_lib
from tests import counting
from tests.baselines_her import test_library


def read(*words):
  """Flags and settings of a command line."""
  with flags.parsed('her-train', '', run_lib._define_all, words):
    return run_lib._read()


def begin(folder, *words):
  """What a run with these arguments leaves."""
  args, given = read(*words)
  checkpoint = folder / 'checkpoints' / '000000001'
  checkpoint.mkdir(parents=True)
  for name in ('rank0.json', 'COMPLETE'):
    (checkpoint / name).write_text('{}')
  params, _, _ = settings.settle(args.env, args.seed, given)
  config.write_params(params, str(folder))


def prepare(folder, *words):
  """Let a command be checked, and nothing else; return what it would do."""
  return run_lib.Plan(*read(f'--log_path={folder}', *words))


def demonstrate(path, episodes):
  """Write demonstrations of an arm at rest."""
  env = envs.make('FetchReach-v1')
  obs, info = [], []
  for _ in range(episodes):
    obs.append([env.reset()])
    steps = [env.step(np.zeros(4)) for _ in range(50)]
    obs[-1] += [x[0] for x in steps]
    info.append([x[3] for x in steps])
  env.close()
  demonstrations.save(path, obs, np.zeros((episodes, 50, 4)), info)


@pytest.mark.parametrize(
  'begun, continued, message',
  [
    ('', '--gamma=0.9', 'gamma: None -> 0.9'),
    ('--gamma=0.9', '--gamma=0.95', 'gamma: 0.9 -> 0.95'),
    ('', '--clip_return=0', 'clip_return: True -> False'),
    ('--seed=1', '--seed=2', 'seed: 1 -> 2'),
    ('--T=60', '--T=50', 'T: 60 -> 50'),
    ('', '--replay_strategy=none', 'replay_strategy: future -> none'),
    ('', '--env=FetchPush-v1', 'env_name: FetchReach-v1 -> FetchPush-v1'),
    ('', '--load_path=none', 'load_path: None -> .*none'),
    ('', '--network=my_net:Mine', 'network_class: .*ActorCritic -> my_net:M'),
    ('', '--network_class=hostile', 'give one of .*or module:name'),
    ('--demo_file=x', '', 'add --trust .*/x'),
    ('--network=hostile:x', '', 'add --trust hostile'),
  ],
)
def test_other_settings_are_refused(
  begun, continued, message, tmp_path, capsys
):
  """The differences are named, before anything is written."""
  begin(tmp_path, *begun.split())
  words = ['program', f'--log_path={tmp_path}', *continued.split()]
  assert run_lib.run(words) == 2
  assert re.search(message, capsys.readouterr().err)
  assert sorted(os.listdir(tmp_path)) == ['checkpoints', 'params.json']


def test_one_program_at_a_time(tmp_path, capsys):
  """The second one is refused before it writes anything."""
  with run_folder.lock(str(tmp_path)):
    assert run_lib.run(['program', f'--log_path={tmp_path}']) == 2
    assert os.listdir(tmp_path) == ['lock']
  assert 'Another process is using the run' in capsys.readouterr().err


def test_folder_of_the_environment(tmp_path, monkeypatch, capsys):
  """It is locked as one of --log_path is."""
  monkeypatch.setenv('OPENAI_LOGDIR', str(tmp_path))
  with run_folder.lock(str(tmp_path)):
    assert run_lib.run(['program']) == 2
  assert 'Another process is using the run' in capsys.readouterr().err


def test_imitation_goes_on(tmp_path, capsys):
  """Demonstrations can be named from elsewhere."""
  demonstrate(str(tmp_path / 'demo.npz'), 2)
  words = ['--num_demo=2', f'--demo_file={tmp_path}/demo.npz']
  begin(tmp_path / 'run', *words)
  relative = os.path.relpath(tmp_path / 'demo.npz')
  plan = prepare(tmp_path / 'run', words[0], f'--demo_file={relative}')
  assert plan.notes == []
  prepare(tmp_path / 'run', f'--trust={tmp_path}/demo.npz')


def test_what_may_change(tmp_path):
  """Length, what is shown, and what the variables do not depend on."""
  begin(tmp_path, '--gamma=0.9', '--seed=3', '--lr=0.1')
  plan = prepare(
    tmp_path,
    '--lr=0.2',
    '--batch_size=64',
    '--total_env_steps=5e5',
    '--reward_scale=2',
    '--play',
    f'--save_path={tmp_path}/weights',
    f'--policy_dir={tmp_path}/elsewhere',
    '--play_episodes=2',
    '--save_video_length=9',
  )
  assert sorted(plan.notes) == [
    'Flag --save_video_length has no effect without --save_video_interval.',
    'Q_lr: 0.1 -> 0.2',
    'Settings kept from the run: gamma: 0.9.',
    'batch_size: 256 -> 64',
    'pi_lr: 0.1 -> 0.2',
  ]
  assert plan._params['seed'] == 3 and plan._settings.gamma == 0.9


def test_environment_of_the_run(tmp_path):
  """A command that names none goes on with it; another is refused."""
  begin(tmp_path, '--env=FetchPush-v1')
  assert prepare(tmp_path)._task.name == 'FetchPush-v1'
  with pytest.raises(errors.UsageError, match='env_name'):
    prepare(tmp_path, '--env=FetchReach-v1')


def test_ways_to_name_the_environment(tmp_path):
  """All that absl reads, not only two dashes."""
  (tmp_path / 'flags').write_text('--env=FetchPush-v1')
  for words in (
    ['-env=FetchPush-v1'],
    ['--env', 'FetchPush-v1'],
    [f'--flagfile={tmp_path}/flags'],
  ):
    assert read(*words)[0].env == 'FetchPush-v1'
  assert read('--seed=1')[0].env is None


def test_limits_of_actions(tmp_path):
  assert prepare(tmp_path, '--max_u=[1,1,1,2]')
  with pytest.raises(errors.UsageError, match='max_u has 3 values'):
    prepare(tmp_path, '--max_u=[1,1,1]')


@pytest.mark.parametrize(
  'name, reason',
  [
    pytest.param('Blind', 'takes no render_mode', marks=pytest.mark.slow),
    ('Fine', 'returns None'),
  ],
)
def test_play_without_images(name, reason, tmp_path, capfd):
  """The training says so at first; playing goes on without a video."""
  env = f'tests.baselines_her.odd_envs:{name}-v0'
  (note,) = prepare(tmp_path, f'--env={env}', '--play').notes
  assert re.search(f'--play will show no pictures: .*{reason}', note)
  run = tmp_path / 'run'
  list(library.train(env, run, 10, test_library.PARAMS, 1))
  words = [str(run), '--trust=tests', '--n_test_rollouts=1']
  assert play.run(words) == 0
  output = capfd.readouterr().out
  assert re.search(f'Playing without pictures: .*{reason}', output)
  assert 'episode_rew=' in output and 'test/success_rate' in output
  assert not (run / 'play.mp4').exists()


@pytest.mark.parametrize('total', [100, 0])
def test_one_budget(total, tmp_path):
  with pytest.raises(errors.UsageError, match='exclude each other'):
    prepare(tmp_path, f'--total_env_steps={total}', '--num_timesteps=50')


def test_runs_of_another_version(tmp_path, capsys):
  begin(tmp_path)
  path = tmp_path / 'params.json'
  path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
  assert run_lib.run(['program', f'--log_path={tmp_path}']) == 2
  assert 'version 2 instead of 1' in capsys.readouterr().err


def test_rows_without_an_epoch_stay(tmp_path):
  """Only those of epochs that are repeated go, whatever the others hold."""
  (tmp_path / 'progress.csv').write_text('epoch,x\n0,a\n1,b\n,c\nx,d\n')
  lines = '{"epoch": 0}\n3\n{"epoch": [1]}\n'
  (tmp_path / 'progress.json').write_text(lines + '{"epoch": 1}\n')
  reports.forget_epochs(str(tmp_path), 1, 40)
  assert (tmp_path / 'progress.csv').read_text() == 'epoch,x\n0,a\n,c\nx,d\n'
  assert (tmp_path / 'progress.json').read_text() == lines


def test_everything_is_read_once(tmp_path, monkeypatch):
  """Flags, checkpoint, settings and their values, also under the lock."""
  begin(tmp_path, '--n_cycles=2')
  seen = []

  def train(self, run, finish):
    seen.append(run.config)
    finish(None)
    yield from ()

  monkeypatch.setattr(run_lib.Plan, 'train', train)
  calls = counting.count(
    monkeypatch,
    (flags, '_parse'),
    (flags, 'read'),
    (checkpoint, 'choose_newest'),
    (config, 'read_params'),
    (config, 'Task'),
    (settings.Settings, 'make'),
  )
  words = ['program', f'--log_path={tmp_path}', '--lr=0.2']
  assert run_lib.run(words) == 0
  ((_, values, newest),) = seen
  assert newest == str(tmp_path / 'checkpoints/000000001')
  assert values.pi_lr == 0.2 and values.n_cycles == 2
  assert set(calls.values()) == {1} and len(calls) == 6


def test_run_that_changes_before_it_is_locked(tmp_path):
  """Another training may have worked there until now."""
  begin(tmp_path)
  plan = prepare(tmp_path)
  params = tmp_path / 'params.json'
  params.write_text(params.read_text().replace('256', '128'))
  with plan.claim() as run:
    assert run.config[1].batch_size == 128
