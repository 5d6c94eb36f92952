"""All results of the project: how each is made, and what it has to reach."""

from agents.run import errors
from scripts.reproductions import bars
from scripts.reproductions.entry import Check, Entry


def find(name: str) -> Entry:
  """Return the entry of a name.

  Raises:
    UsageError: If there is none.
  """
  if name not in ENTRIES:
    raise errors.UsageError(
      f'Result {name!r} is unknown. {errors.suggest(name, ENTRIES)}'
    )
  return ENTRIES[name]


def _ppo(name, config, steps, more=(), **kwargs):
  """Entry of a configuration of PPO.

  Args:
    name: Name of the entry.
    config: Name of the configuration.
    steps: Global steps, half of which are training.
    more: Further flags.
    **kwargs: Further attributes.
  """
  flags = [f'--config={config}', '--seed={seed}', f'--steps={steps // 2}']
  return Entry(name, 'ppo', flags=[*flags, *more], steps=steps, **kwargs)


def _her(name, env, steps, ranks=1, more=(), **kwargs):
  flags = [f'--env={env}', '--seed={seed}', f'--num_timesteps={steps // ranks}']
  return Entry(
    name,
    'her',
    flags=[*flags, *more],
    steps=steps,
    ranks=ranks,
    cores=ranks,
    measure='success rate',
    **kwargs,
  )


def _planet(name, config, params, steps, **kwargs):
  flags = ['--config', config, '--seed', '{seed}', '--params', params]
  kwargs.setdefault('cores', 2)
  return Entry(name, 'planet', flags=flags, steps=steps, **kwargs)


def _pipeline(name, params, cpanel, **kwargs):
  flags = ['--params', params, '--cpanel', cpanel, '--no-monitor-gpu']
  return Entry(name, 'pipeline', flags=flags, **kwargs)


# Looked up in CURL's table; the values after 1,000 episodes are as later texts
# quote them.
_CURL = 'as quoted by CURL (arXiv 2004.04136, table 1)'
_PAPER = 'after 1,000 episodes (arXiv 1811.04551, mean of 5 seeds)'
_PLAPPERT = 'figure only, 19 ranks of 2 environments (arXiv 1802.09464)'
_SMALL = 'reduced: smaller model and planner'
_SWINGUP = {
  'published at 100k steps': 297.0,
  'published at 500k steps': 475.0,
  'published at 1M steps': 821.0,
}
_CHEETAH = {'published at 100k steps': 138.0, 'published at 1M steps': 662.0}

_LIST = [
  _ppo(
    'ppo_pendulum',
    'pybullet_pendulum',
    # Beyond twice what the slowest seed of the original takes, 552,000.
    1116000,
    ['--noenv_processes'],
    meaning='PPO, InvertedPendulumBulletEnv-v0',
    panel='PPO',
    seeds=(0, 1, 2, 3),
    bar=bars.FirstReach(195, factor=2),
    reference='ppo_pendulum_curve.csv',
    hours=0.15,
    check=Check(seed=0, episodes=20, tolerance=5),
  ),
  _ppo(
    'ppo_swingup',
    'pybullet_pendulumswingup',
    1800000,
    ['--noenv_processes'],
    meaning='PPO, InvertedPendulumSwingupBulletEnv-v0',
    seeds=(0, 1, 2, 3, 4),
    bar=bars.FirstReach(-900),
    reference='ppo_swingup_curve.csv',
    hours=0.15,
  ),
  _ppo(
    'ppo_doublependulum',
    'pybullet_doublependulum',
    1800000,
    ['--noenv_processes'],
    meaning='PPO, InvertedDoublePendulumBulletEnv-v0',
    seeds=(0, 1, 2, 3, 4),
    bar=bars.FirstReach(500),
    reference='ppo_doublependulum_curve.csv',
    hours=0.15,
  ),
  _ppo(
    'ppo_minitaur',
    'pybullet_minitaur',
    1320000,
    meaning='PPO, minitaur',
    seeds=(0,),
    bar=bars.Gain(),
    cores=2,
    hours=1,
    reduced='reduced: 0.66 of 30 million training steps',
  ),
  _ppo(
    'ppo_cheetah',
    'pybullet_cheetah',
    4800000,
    meaning='PPO, HalfCheetahBulletEnv-v0',
    seeds=(0,),
    bar=bars.Gain(),
    cores=2,
    hours=1,
    reduced='reduced: 2.4 of 100 million training steps',
  ),
  _her(
    'her_reach',
    'FetchReach-v1',
    10000,
    meaning='HER, FetchReach',
    panel='HER',
    seeds=(0, 1, 2, 3, 4),
    bar=bars.StaysFrom(1.0, steps=3500),
    published='1.0 within 5,000 steps (README of OpenAI Baselines)',
    reference='her_fetchreach_curve.csv',
    hours=0.03,
    check=Check(seed=0, episodes=50, tolerance=0.05),
  ),
  _her(
    'her_push',
    'FetchPush-v1',
    1500000,
    2,
    ['--num_env=2'],
    meaning='HER, FetchPush, 2 ranks of 2 environments',
    panel='HER',
    seeds=(0, 1, 2),
    bar=bars.Holds(0.95, 3, steps=1500000),
    stop_early=True,
    published=(
      '0.69 at 855,000 and 0.995 at 1.8 million steps (published log, 19 ranks '
      'of 2 environments)'
    ),
    levels={
      'published at 855k steps': 0.69,
      'published at 1.8M steps': 0.995,
    },
    hours=0.5,
    check=Check(seed=1, episodes=50, tolerance=0.1),
  ),
  _her(
    'her_pick',
    'FetchPickAndPlace-v1',
    1500000,
    2,
    ['--num_env=2'],
    meaning='HER, FetchPickAndPlace, 2 ranks of 2 environments',
    panel='HER',
    seeds=(0,),
    bar=bars.LastMean(3, 0.8),
    published=_PLAPPERT,
    hours=1.4,
    check=Check(seed=0, episodes=50, tolerance=0.1),
  ),
  _her(
    'her_slide',
    'FetchSlide-v1',
    1500000,
    2,
    ['--num_env=2'],
    meaning='HER, FetchSlide, 2 ranks of 2 environments',
    seeds=(0,),
    bar=bars.LastMean(3, 0.3),
    published=_PLAPPERT,
    hours=1.7,
    check=Check(seed=0, episodes=50, tolerance=0.1),
  ),
  _her(
    'her_pick_demos',
    'FetchPickAndPlace-v1',
    1500000,
    2,
    [
      '--num_env=2',
      '--demo_file={parent}/demonstrations.npz',
      '--num_demo=100',
      '--bc_loss=1',
      '--q_filter=1',
      '--demo_batch_size=128',
      '--prm_loss_weight=0.001',
      '--aux_loss_weight=0.0078',
    ],
    meaning='HER, FetchPickAndPlace with 100 demonstrations',
    seeds=(0,),
    bar=bars.FirstReach(0.5, factor=1),
    stop_early=True,
    reference='her_pick',
    before=(
      [
        'python',
        '-m',
        'baselines_her.data_generation',
        '--out',
        '{parent}/demonstrations.npz',
      ],
      'demonstrations.npz',
    ),
    hours=0.15,
  ),
  _planet(
    'planet_cartpole_balance',
    'cpu',
    '{max_steps: 150384}',
    120000,
    meaning='PlaNet `cpu`, cartpole_balance',
    panel='PlaNet',
    seeds=(0, 1),
    bar=bars.LastMean(10, 750),
    hours=3.4,
    cores=1,
    reduced=_SMALL,
    check=Check(seed=0, episodes=10, tolerance=80, processes=2),
  ),
  _planet(
    'planet_cartpole_swingup',
    'cpu',
    '{tasks: [cartpole_swingup], max_steps: 123392}',
    100000,
    meaning='PlaNet `cpu`, cartpole_swingup',
    panel='PlaNet',
    seeds=(0, 1),
    bar=bars.LastMean(10, 240),
    published=f'297 at 100,000 steps, 475 at 500,000 {_CURL}; 821 {_PAPER}',
    levels=_SWINGUP,
    hours=2.6,
    cores=1,
    reduced=_SMALL,
    check=Check(seed=0, episodes=10, tolerance=80, processes=2),
  ),
  _planet(
    'planet_cheetah_run',
    'cpu',
    # The horizon of the paper: that of `cpu` is for falling poles.
    '{tasks: [cheetah_run], planner_horizon: 12, max_steps: 123392}',
    100000,
    meaning='PlaNet `cpu` with horizon 12, cheetah_run',
    seeds=(0,),
    bar=bars.LastMean(10, 92),
    published=f'138 at 100,000 steps {_CURL}; 662 {_PAPER}',
    levels=_CHEETAH,
    hours=2.5,
    cores=1,
    reduced=_SMALL,
  ),
  _planet(
    'planet_default',
    'default',
    '{tasks: [cartpole_swingup]}',
    1000000,
    meaning='PlaNet `default`, cartpole_swingup',
    seeds=(0,),
    bar=bars.LastMean(10),
    published=f'297 at 100,000 steps, 475 at 500,000 {_CURL}; 821 {_PAPER}',
    levels=_SWINGUP,
    shows_collected=True,
    hours=150,
  ),
  _planet(
    'planet_cheetah_vector',
    'cpu',
    # The horizon of `planet_cheetah_run`, and whole epochs.
    '{tasks: [cheetah_run], observations: vector, planner_horizon: 12, '
    'max_steps: 381744}',
    300000,
    meaning='PlaNet `cpu` with horizon 12, cheetah_run from the state',
    seeds=(0,),
    bar=bars.Gain(10),
    published=f'662 from pixels {_PAPER}, another setting',
    levels={'published from pixels at 1M steps': 662.0},
    hours=3.4,
    reduced='another setting: state instead of pixels, ' + _SMALL,
  ),
  _planet(
    'carla_loop',
    'carla_cpu',
    '{}',
    13500,
    meaning='PlaNet `carla_cpu`, driving in the offline world',
    panel='CARLA',
    seeds=(0, 1),
    # A quarter of what the scripted driver gets.
    bar=bars.Played(62.5),
    hours=0.5,
    reward_scale=0.2,
    reduced=_SMALL,
    # Of seed 0, some episodes end beside the road.
    check=Check(seed=1, episodes=40, tolerance=30, processes=2),
  ),
  _pipeline(
    'pipeline_her_reach',
    'baselines_her.params.fetch_reach',
    # One environment, as `her_reach` has.
    '{seed: {seed}, num_workers: 1, number_epochs: 20}',
    meaning='HER through the pipeline, FetchReach',
    seeds=(0,),
    steps=10000,
    bar=bars.Same(),
    measure='success rate',
    reference='her_reach',
    hours=0.04,
  ),
  _pipeline(
    'pipeline_ppo_pendulum',
    'agents.pipeline.params.ppo_pendulum',
    '{seed: {seed}, env_processes: 0, number_epochs: 10}',
    meaning='PPO through the pipeline, InvertedPendulumBulletEnv-v0',
    seeds=(0,),
    steps=200000,
    bar=bars.FirstReach(195, 250000),
    hours=0.1,
  ),
  _pipeline(
    'pipeline_ddpg_pendulum',
    'agents.pipeline.params.ddpg_pendulum',
    '{seed: {seed}, number_epochs: 20}',
    meaning='DDPG through the pipeline, Pendulum-v1',
    seeds=(0,),
    steps=20000,
    bar=bars.LastMean(1, -200),
    hours=0.05,
  ),
  _planet(
    'planet_cheetah_run_full',
    'default',
    '{tasks: [cheetah_run]}',
    300000,
    meaning='PlaNet `default`, cheetah_run',
    seeds=(0,),
    bar=bars.LastMean(10),
    published=f'138 at 100,000 steps {_CURL}; 662 {_PAPER}',
    levels=_CHEETAH,
    shows_collected=True,
    gpu=True,
    hours=24,
  ),
]
ENTRIES = {x.name: x for x in _LIST}
