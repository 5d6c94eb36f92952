"""The program that plays episodes of trained PPO agents and makes videos."""

import functools
import os
from unittest import mock

import numpy as np
import pytest

from agents import train_ppo, utility, visualize_ppo
from agents.envs import batch_env, video, window
from agents.run import log
from agents.tools.tf1 import tf
from tests import scripted_envs
from tests.agents import training_runs


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
  """Folder of a finished run."""
  logdir = tmp_path_factory.mktemp('finished')
  args = training_runs.command(logdir, args=['--noenv_processes'])[2:]
  assert train_ppo.run(args) == 0
  return training_runs.run_dir(logdir)


def test_videos(capsys, finished, tmp_path):
  """A video and a line per episode, also from a folder that was moved."""
  logdir = tmp_path / 'moved'
  os.symlink(finished, logdir)
  outdir = tmp_path / 'videos'
  args = [f'--logdir={logdir}', f'--outdir={outdir}', '--num_episodes=2']
  assert visualize_ppo.run([*args, '--noenv_processes']) == 0
  output = capsys.readouterr().out
  assert 'Mean return' in output and 'of 2 episodes' in output
  assert sorted(os.listdir(outdir)) == [
    'agent1-episode-1.mp4',
    'agent1-episode-2.mp4',
    'episodes.jsonl',
  ]
  assert output.count('20 environment steps') == 2
  assert os.path.getsize(outdir / 'agent1-episode-1.mp4') > 1000
  _, second = log.read_json(str(outdir / 'episodes.jsonl'))
  assert f'with {second["checkpoint"]}.' in output
  assert second['video'] == 'agent1-episode-2.mp4'
  # As a function, which plays at once and tells where the videos are.
  (episode,) = visualize_ppo.visualize(
    str(logdir), str(outdir / 'more'), 1, 1, env_processes=False
  )
  assert episode['video'] == str(outdir / 'more' / 'agent1-episode-1.mp4')
  assert os.path.getsize(episode['video']) > 1000


def test_videos_without_ffmpeg(finished, tmp_path, monkeypatch):
  monkeypatch.setattr(video, 'preferred_ending', lambda: '.gif')
  (episode,) = visualize_ppo.visualize(
    finished, str(tmp_path), 1, 1, env_processes=False
  )
  assert episode['video'] == str(tmp_path / 'agent1-episode-1.gif')
  assert os.path.getsize(episode['video']) > 1000


class Counting(scripted_envs.ScriptedEnv):
  """Uses a name of the recorder for something else."""

  def step(self, action):
    *others, info = super().step(action)
    return *others, {**info, 'episode': 7}


def test_infos_of_the_environment():
  """Only recorded episodes count; the next one was taken for a record."""
  made = functools.partial(Counting, 1, [1])
  env = batch_env.VectorEnv([made] * 2)
  agent = mock.Mock(observation_space=env.observation_space)
  agent.predict.return_value = np.zeros([2, 1]), None
  played = visualize_ppo._play(agent, env)
  stopping = [False, False, True]
  with mock.patch('agents.run.stopping.requested', lambda: stopping.pop(0)):
    assert list(played) == []


def test_own_visualize_function(finished, tmp_path):
  """Parts of the original's `visualize`, which programs of users copy."""
  config = utility.load_config(finished)
  tf.reset_default_graph()
  make = functools.partial(
    visualize_ppo._create_environment, config, str(tmp_path / 'videos')
  )
  env = utility.define_batch_env(make, 2, False)
  graph = utility.define_simulation_graph(env, config.algorithm, config)
  loop = visualize_ppo._define_loop(graph, 2 * config.max_length)
  saver = utility.define_saver((r'.*_temporary.*', r'global_step'))
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, finished, resume=True)
    (score,) = loop.run(sess, saver, 2 * config.max_length)
  env.close()
  assert len(os.listdir(tmp_path / 'videos')) == 2 and np.isfinite(score)


def test_windows(finished, tmp_path, monkeypatch):
  """Each has a process, whatever the number of cores."""
  env = mock.Mock(side_effect=KeyboardInterrupt)
  monkeypatch.setattr(batch_env, 'VectorEnv', env)
  monkeypatch.setattr(window, 'check', lambda: None)
  with pytest.raises(KeyboardInterrupt):
    visualize_ppo.visualize(finished, str(tmp_path), 9, 9, render=True)
  constructors, workers = env.call_args.args
  assert len(constructors) == workers == 9


def test_seed_of_videos(finished, tmp_path):
  """The same episodes again; another environment plays others."""

  def play(name, agents, episodes, seed):
    played = visualize_ppo.visualize(
      finished, str(tmp_path / name), agents, episodes, None, False, seed=seed
    )
    return [x['return'] for x in played]

  first = play('first', 1, 2, 5)
  assert first == play('same', 1, 2, 5) and first[0] != first[1]
  # In a batch of another size numbers differ by rounding.
  assert min(abs(x - first[0]) for x in play('both', 2, 2, 4)) < 1e-3


def test_bad_input_for_videos(capsys, finished, tmp_path, monkeypatch):
  def sentence(*args):
    return training_runs.fail(capsys, visualize_ppo, list(args))

  assert '--logdir is missing' in sentence()
  assert 'There is no run' in sentence(f'--logdir={tmp_path}')
  assert 'num_episodes is 0' in sentence(
    f'--logdir={finished}', '--num_episodes=0'
  )
  assert 'no checkpoint model.ckpt-7' in sentence(
    f'--logdir={finished}', '--checkpoint=model.ckpt-7'
  )
  assert '2 environments in one process' in sentence(
    *(f'--logdir={finished}', '--render', '--num_agents=2'),
    '--noenv_processes',
  )
  for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
    monkeypatch.delenv(name, raising=False)
  assert 'no display' in sentence(f'--logdir={finished}', '--render')
  assert not os.path.exists(os.path.join(finished, 'videos'))
  planet = tmp_path / 'planet'
  planet.mkdir()
  (planet / 'config.yaml').write_text(
    'preprocess: {reference: planet.tools.preprocess:preprocess}'
  )
  assert 'is not a PPO run' in sentence(f'--logdir={planet}')
  for given in ([], ['--env=CartPole-v1'], ['--config=cartpole']):
    args = [f'--logdir={planet}', *given]
    said = training_runs.fail(capsys, train_ppo, args)
    assert 'is not a PPO run' in said
