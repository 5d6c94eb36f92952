"""Environments of other libraries, by the programs that users start.

Those whose libraries are missing are skipped. The extra `test` has no MiniGrid,
as it requires pygame-ce, which overwrites pygame; `pip install --no-deps
minigrid ale-py panda-gym` installs what is missing here.
"""

import csv
import glob
import importlib.util
import json
import os

import pytest

from tests import processes
from tests.docs import small

PLANET = {
  **small.PLANET,
  'action_repeat': 2,
  'episode_length': 40,
  'image_size': 32,
}
PPO = {**small.PPO, 'max_length': 20}
HER = ['--T=20', *(f'--{name}={value}' for name, value in small.HER.items())]
# System, environment, module that has it.
REAL = [
  ('planet', 'minigrid:MiniGrid-Empty-5x5-v0', 'minigrid'),
  ('planet', 'CarRacing-v3', 'Box2D'),
  ('planet', 'Hopper-v5', 'mujoco'),
  ('planet', 'ale_py:ALE/Breakout-v5', 'ale_py'),
  ('ppo', 'ale_py:ALE/Breakout-v5', 'ale_py'),
  ('ppo', 'CarRacing-v3', 'Box2D'),
  ('ppo', 'LunarLander-v3', 'Box2D'),
  ('ppo', 'BipedalWalker-v3', 'Box2D'),
  ('ppo', 'Hopper-v5', 'mujoco'),
  ('ppo', 'tests.agents.envs.old_envs:OldPoint-v0', 'gym'),
  ('her', 'FetchPush-v4', 'gymnasium_robotics'),
  ('her', 'gymnasium_robotics:PointMaze_UMaze-v3', 'gymnasium_robotics'),
  ('her', 'gymnasium_robotics:AntMaze_UMaze-v5', 'gymnasium_robotics'),
  ('her', 'HandReach-v3', 'gymnasium_robotics'),
  ('her', 'panda_gym:PandaReach-v3', 'panda_gym'),
]


def run(module, *args):
  return processes.run_python('-m', module, *args, seconds=600)


def trusted(env):
  """Flags for programs that read the name from a run."""
  return [f'--trust={env.split(":")[0]}'] if ':' in env else []


def use_planet(env, folder):
  for steps in 2, 4:
    params = {**PLANET, 'tasks': [f'gym_{env}'], 'max_steps': 8 * steps}
    words = '--config', 'debug', '--params', json.dumps(params)
    run('planet.scripts.train', '--logdir', folder, *words)
    assert glob.glob(f'{folder}/00001/model.ckpt-{8 * steps}.index')
  video = f'{folder}/video.mp4'
  words = '--episodes', '1', '--video', video, *trusted(env)
  output = run('planet.scripts.evaluate', '--logdir', folder, *words)
  assert 'return' in output
  return video


def use_ppo(env, folder):
  for steps in 80, 160:
    params = json.dumps({**PPO, 'steps': steps})
    words = f'--env={env}', f'--logdir={folder}', f'--params={params}'
    run('agents.train_ppo', '--config=default', *words)
    (logdir,) = glob.glob(f'{folder}/*-default')
    saved = glob.glob(f'{logdir}/model.ckpt-*.index')
    assert max(int(x.split('-')[-1].split('.')[0]) for x in saved) >= steps
  words = f'--logdir={logdir}', f'--outdir={folder}/videos', *trusted(env)
  assert 'Mean return' in run(
    'agents.visualize_ppo', '--num_episodes=1', *words
  )
  return f'{folder}/videos/agent1-episode-1.mp4'


def use_her(env, folder):
  words = f'--env={env}', f'--log_path={folder}', '--num_timesteps=100', *HER
  run('baselines_her.run', *words)
  words = f'--log_path={folder}', '--num_timesteps=200', *trusted(env)
  run('baselines_her.run', *words, '--play', '--play_episodes=1')
  with open(f'{folder}/progress.csv') as file_:
    rows = list(csv.DictReader(file_))
  assert int(float(rows[-1]['train/episode'])) > int(
    float(rows[0]['train/episode'])
  )
  path = f'{folder}/policies/policy_latest.pkl'
  words = '--render=0', '--n_test_rollouts=1', *trusted(env)
  output = run('baselines_her.play', path, *words)
  assert 'test/episode' in output
  return f'{folder}/play.mp4'


@pytest.mark.slow
@pytest.mark.render
@pytest.mark.parametrize('system, env, module', REAL)
def test_train_continue_play(system, env, module, tmp_path):
  """Also evaluated, and in a video."""
  if importlib.util.find_spec(module) is None:
    pytest.skip(f'{module} is not installed')
  use = {'planet': use_planet, 'ppo': use_ppo, 'her': use_her}[system]
  assert os.path.getsize(use(env, str(tmp_path))) > 500
