"""Wrong command lines of all programs: one sentence, and nothing else."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests import golden

HER = '--params=baselines_her.params.fetch_reach'
DDPG = '--params=agents.pipeline.params.ddpg_pendulum'
PPO = '--config=pybullet_pendulum'
AGENTS = os.path.join(golden.ROOT, 'results', 'agents')
CURVE = os.path.join(golden.ROOT, 'results', 'ppo_pendulum', 'curve.csv')

# Module, arguments, and what the sentence says. None needs an environment.
TABLE = [
  ('agents.train_ppo', [], 'config'),
  ('agents.train_ppo', ['--config=nonsense'], "'nonsense'"),
  ('agents.train_ppo', ['--config=describe'], "'describe'"),
  ('agents.train_ppo', [PPO, '--seed=-1'], '--seed is -1'),
  ('agents.train_ppo', [PPO, '--seed=1.5'], 'seed=1.5'),
  ('agents.train_ppo', [PPO, '--params={seed: 1.5}'], "'seed' is 1.5"),
  ('agents.train_ppo', [PPO, '--params={seed: -1}'], "'seed' is -1"),
  ('agents.train_ppo', [PPO, '--params={num_agents:3}'], 'after the colon'),
  ('agents.train_ppo', [PPO, '--params={learn_rate: 1}'], 'learning_rate'),
  ('agents.train_ppo', [PPO, '--params=[1]'], '--params'),
  ('agents.train_ppo', [PPO, '--params={a'], 'not valid YAML'),
  ('agents.train_ppo', [PPO, '--params={learning_rate: x}'], "'x'"),
  ('agents.train_ppo', [PPO, '--params={update_every: 0}'], 'update_every'),
  ('agents.train_ppo', [PPO, '--params={network: nonsense}'], 'nonsense'),
  ('agents.train_ppo', [PPO, '--steps=x'], 'steps'),
  ('agents.train_ppo', [PPO, '--threads=0'], 'threads'),
  ('agents.train_ppo', [PPO, '--logdir=x', '--timestamp=a/../../b'], 'path'),
  ('agents.train_ppo', [PPO, '--sead=1'], 'mean seed'),
  ('agents.train_ppo', [PPO, 'seed=1'], "argument 'seed=1'"),
  ('agents.train_ppo', [PPO, '--wandb=a/b'], 'wandb'),
  ('agents.visualize_ppo', [], '--logdir'),
  ('agents.visualize_ppo', ['--logdir=nobody'], 'nobody'),
  ('agents.visualize_ppo', ['--logdir=x', '--num_episodes=0'], 'num_episodes'),
  ('agents.visualize_ppo', ['--logdir=x', '--seed=-1'], 'seed'),
  ('agents.plot_scores', [CURVE], '--out'),
  ('agents.plot_scores', ['--out=x.png', 'nobody.csv'], 'nobody.csv'),
  ('agents.plot_scores', ['--out=x.xyz', CURVE], r'\.png'),
  ('agents.plot_scores', ['--out=x.png', '--window=0', CURVE], 'window'),
  ('agents.plot_scores', ['--out=x.png', '--phase=x', CURVE], 'phase x'),
  ('planet.scripts.train', [], '--logdir'),
  ('planet.scripts.train', ['--logdir=x', '--config=nonsense'], 'nonsense'),
  ('planet.scripts.train', ['--logdir=x', '--seed=-1'], '--seed'),
  ('planet.scripts.train', ['--logdir=x', '--seed=1.5'], '--seed'),
  ('planet.scripts.train', ['--logdir=x', '--num_runs=-1'], '--num_runs'),
  ('planet.scripts.train', ['--logdir=x', '--resume_runs=maybe'], 'maybe'),
  ('planet.scripts.train', ['--logdir=x', '--sead=1'], '--seed'),
  ('planet.scripts.train', ['--logdir=x', '--params={free_nat: 1}'], 'nats'),
  ('planet.scripts.train', ['--logdir=x', '--params={free_nats: -1}'], 'nats'),
  ('planet.scripts.train', ['--logdir=x', '--params={free_nats:3}'], 'colon'),
  ('planet.scripts.train', ['--logdir=x', '--params={tasks: [x]}'], "'x'"),
  ('planet.scripts.train', ['--logdir=x', '--params={batch_shape: [5]}'], '5'),
  ('planet.scripts.train', ['--logdir=x', '--params={network: x}'], 'conv_ha'),
  (
    'planet.scripts.train',
    ['--logdir=x', '--params={collect_objective: x}'],
    'give one of reward',
  ),
  (
    'planet.scripts.train',
    ['--logdir=x', '--params={gradient_heads: [x]}'],
    'x',
  ),
  (
    'planet.scripts.train',
    ['--logdir=x', '--params={train_collects: [{evry: 5}]}'],
    'mean every',
  ),
  ('planet.scripts.evaluate', ['--logdir=nobody'], 'nobody'),
  ('planet.scripts.evaluate', ['--logdir=x', '--episodes=0'], '--episodes'),
  (
    'planet.scripts.evaluate',
    ['--logdir=x', '--params={plan: 1}'],
    'There is no run',
  ),
  ('planet.scripts.evaluate', ['--logdir=x', '--seed=-1'], '--seed'),
  ('planet.scripts.plot', ['nobody'], 'nobody'),
  ('planet.scripts.plot', ['x', '--axis=y'], 'axis'),
  ('planet.scripts.create_video', ['-i=nobody', '-o=x.gif'], 'nobody'),
  ('planet.scripts.create_video', ['-i=x', '-o=x.gif', '-x=0'], 'tile_x'),
  ('planet.scripts.fetch_events', ['--logdirs=nobody', '--outdir=x'], 'nobody'),
  ('planet.scripts.sync', ['--source=nobody', '--target=x'], 'nobody'),
  ('planet.envs.carla.smoke', ['--seed=-1'], '--seed'),
  ('baselines_her.run', ['--num_timesteps=-1'], 'num_timesteps'),
  ('baselines_her.run', ['--num_timesteps=x'], 'num_timesteps'),
  ('baselines_her.run', ['--seed=-1'], '--seed is -1'),
  ('baselines_her.run', ['--seed=1.5'], 'seed=1.5'),
  ('baselines_her.run', ['--total_env_steps=-1'], 'total_env_steps'),
  ('baselines_her.run', ['--network_class=mlp'], 'module:name'),
  ('baselines_her.run', ['--alg=ppo'], "'ppo'"),
  ('baselines_her.run', ['--gama=0.9'], 'gamma'),
  ('baselines_her.run', ['--gamma=2'], 'gamma'),
  ('baselines_her.run', ['--gamma=1'], 'clip_return'),
  ('baselines_her.run', ['--n_batches=x'], 'n_batches'),
  ('baselines_her.run', ['--override_params=[1]'], 'override_params'),
  ('baselines_her.run', ['--rollout_batch_size=2'], '--num_env'),
  ('baselines_her.run', ['--bc_loss=1'], 'demo_file'),
  ('baselines_her.play', ['nobody'], 'nobody'),
  ('baselines_her.play', ['x', '--n_test_rollouts=0'], 'n_test_rollouts'),
  ('baselines_her.play', ['/', '--video=x.xyz'], 'xyz'),
  ('baselines_her.plot', ['nobody'], 'nobody'),
  ('baselines_her.plot', ['x', '--axis=y'], 'axis'),
  ('baselines_her.data_generation', ['--num_episodes=0'], 'num_episodes'),
  ('baselines_her.data_generation', ['--out=x'], 'npz'),
  ('agents.pipeline.main', [], '--params'),
  ('agents.pipeline.main', ['--params=nonsense'], 'nonsense'),
  ('agents.pipeline.main', ['--params=agents.run.errors'], 'cpanel'),
  ('agents.pipeline.main', [DDPG, '--cpanel={seed: -1}'], "'seed'.* is -1"),
  ('agents.pipeline.main', [HER, '--cpanel={seed: 1.5}'], "'seed'.* is 1.5"),
  ('agents.pipeline.main', [HER, '--cpanel={sead: 1}'], 'seed'),
  ('agents.pipeline.main', [HER, '--cpanel={epoch_size: x}'], 'epoch_size'),
  ('agents.pipeline.main', [HER, '--cpanel={epoch_size: 0}'], 'n_cycles'),
  ('agents.pipeline.main', [HER, '--cpanel={gamma: 2}'], 'gamma'),
  ('agents.pipeline.main', [HER, '--repeal={runner.x: 1}'], "'runner.x'"),
  ('agents.pipeline.main', [HER, '--repeal={runner.test_int: 0}'], 'test_int'),
  ('agents.pipeline.main', [HER, '--session-name=a/b'], 'session-name'),
  ('agents.pipeline.main', [HER, '--log-level=9'], 'log-level'),
  ('agents.pipeline.main', [HER, '--resume'], '--load-checkpoint'),
  (
    'agents.pipeline.main',
    ['--load-checkpoint=x', '--resume'],
    'not a session',
  ),
  ('agents.pipeline.main', [HER, '--play', '--custom'], 'exclude'),
  ('agents.pipeline.plot', [], 'session'),
  ('agents.pipeline.plot', ['nobody'], 'nobody'),
  ('agents.pipeline.plot', ['x', '--keyx=y'], 'keyx'),
  ('agents.check_env', [], 'env'),
  ('agents.check_env', ['x', '--for=y'], 'for'),
  ('agents.check_env', ['x', '--seed=-1'], 'seed'),
  ('scripts.reproduce', [], '--list'),
  ('scripts.reproduce', ['nobody'], 'nobody'),
  ('scripts.reproduce', ['her_reach', '--seed=-1'], 'seed'),
  ('scripts.benchmark', ['nobody'], 'nobody'),
  ('scripts.benchmark', ['ppo', '--repeats=0'], 'repeats'),
  ('scripts.carla_policies', ['--episodes=0'], 'episodes'),
  ('scripts.compare', ['nobody'], 'nobody'),
]


@pytest.fixture(scope='module')
def ends(tmp_path_factory):
  """How the commands of the table end, all of them in one process."""
  result = subprocess.run(
    [sys.executable, '-m', 'tests.wrong_commands'],
    cwd=tmp_path_factory.mktemp('empty'),
    env={**os.environ, 'PYTHONPATH': golden.ROOT, 'HOME': '/nonexistent'},
    input=json.dumps([[module, *args] for module, args, _ in TABLE]),
    capture_output=True,
    text=True,
    timeout=300,
  )
  return json.loads(result.stdout)


@pytest.mark.parametrize('number', range(len(TABLE)))
def test_wrong_command(ends, number):
  module, args, words = TABLE[number]
  end = ends[number]
  assert end['code'] == 2, (module, args, end)
  assert re.fullmatch('Error: .*\n', end['said']) and not end['printed'], end
  assert re.search(words, end['said'])
  assert end['files'] == [] and not end['tensorflow']
