"""What the parameters of all trainings with HER have in common."""

from typing import Any

from agents.pipeline.params import common
from baselines_her import config, declarations, demonstrations
from baselines_her import settings as settings_lib

# Settings that the pipeline has other names for, or that follow from others.
_RENAMED = {
  'n_cycles': 'epoch_size',
  'rollout_batch_size': 'num_workers',
}
_DERIVED = ('bc_loss',)
# Arguments of the nodes `policy` and `sampler` of the agent.
_NETWORKS = ('hidden', 'layers')
_SAMPLING = ('replay_strategy', 'replay_k')


def make_cpanel(env_name: str, number_epochs: int) -> dict[str, Any]:
  """Make a control panel with the default settings for an environment.

  Args:
    env_name: Id of the environment.
    number_epochs: Number of epochs.

  Returns:
    Dict of plain data. `epoch_size` are cycles per epoch, `num_workers`
    environments per rank; for the others see `config.DEFAULT_PARAMS`.
  """
  defaults = config.define_params(
    env_name, config.DEFAULT_PARAMS['replay_strategy'], None
  )
  panel = {
    'model_name': env_name,
    'seed': 0,
    'number_epochs': number_epochs,
    'epoch_size': defaults['n_cycles'],
    'n_batches': defaults['n_batches'],
    'batch_size': defaults['batch_size'],
    'num_workers': defaults['rollout_batch_size'],
    'test_activate': True,
    'test_interval': 1,
    'save_interval': 1,
    'memory_save': 'final',
    'max_exec_time': None,
    'max_exec_iter': None,
    'policy_save_interval': 5,
    'clip_return': True,
    'demo_file': None,
  }
  for name in config.DEFAULT_PARAMS:
    if name not in _RENAMED and name not in _DERIVED:
      # Overrides have to be of the same type, so that 5 would refuse 2.5.
      real = declarations.Settings.base(name) is float
      panel[name] = float(defaults[name]) if real else defaults[name]
  return panel


def gen_params(cpanel: dict[str, Any]) -> dict[str, Any]:
  """Make a tree of parameters, with an environment to ask for its sizes.

  Args:
    cpanel: Dict of `make_cpanel`.

  Returns:
    Nested dict of plain data.

  Raises:
    UsageError: If a value makes no sense or the environment does not fit.
  """
  _check(cpanel)
  env = _describe_env(cpanel['model_name'], cpanel['seed'])
  if cpanel['demo_file']:
    demonstrations.check(cpanel['demo_file'], cpanel['num_demo'], env['T'])
  settings = {
    k: cpanel[k]
    for k in config.DEFAULT_PARAMS
    if k in cpanel and k not in ('network_class', *_NETWORKS, *_SAMPLING)
  }
  settings['rollout_batch_size'] = cpanel['num_workers']
  # Says how often to repeat, which is an argument of the explorer.
  n_test_rollouts = settings.pop('n_test_rollouts')
  shared = {'env': env, 'settings': settings}
  more: dict[str, dict[str, Any]] = {
    'train': {},
    'test': {'n_rollouts': n_test_rollouts},
    'eval': {},
  }
  if not cpanel['test_activate']:
    more.pop('test')
  return {
    'runner': common.define_runner(
      cpanel,
      '/success/test' if cpanel['test_activate'] else '/success/train',
      cpanel['memory_save'],
    ),
    # The same numbers every time.
    'tf': {'intra_op': 1, 'inter_op': 1},
    'env': env,
    'memory': {
      'train': {'name': 'baselines_her.pipeline.HERMemory', 'args': shared}
    },
    'agents': {
      'agent': {
        'name': 'baselines_her.pipeline.HERAgent',
        'args': {
          **shared,
          'clip_return': cpanel['clip_return'],
          'policy_save_interval': cpanel['policy_save_interval'],
          'demo_file': cpanel['demo_file'],
        },
        **_define_parts(cpanel),
      }
    },
    'explorer': common.define_explorers(
      shared, 'baselines_her.pipeline.HERExplorer', **more
    ),
  }


def _define_parts(cpanel: dict[str, Any]) -> dict[str, Any]:
  """Define the nodes `policy` and `sampler` of the agent."""
  return {
    'policy': {
      'name': cpanel['network_class'].replace(':', '.'),
      'args': {x: cpanel[x] for x in _NETWORKS},
    },
    'sampler': {
      'name': 'baselines_her.her_sampler.define_sampler',
      'args': {x: cpanel[x] for x in _SAMPLING},
    },
  }


def _describe_env(env_name: str, seed: int | None) -> dict[str, Any]:
  """Return name, seed, time limit and sizes of an environment.

  The environment is made in this process, as it renders nothing and draws
  from a generator of its own; training makes one here as well, for rewards.
  """
  params = config.prepare_params(
    config.define_params(
      env_name, config.DEFAULT_PARAMS['replay_strategy'], None
    )
  )
  dims = config.configure_dims(params)
  config.cached_make_env(params['make_env']).close()
  return {'name': env_name, 'seed': seed, 'T': params['T'], 'dims': dims}


def _check(cpanel: dict[str, Any]) -> None:
  settings_lib.check_values(
    {x: cpanel[x] for x in ('replay_strategy', 'demo_file')},
    {
      **{k: cpanel[k] for k in config.DEFAULT_PARAMS if k in cpanel},
      **{old: cpanel[new] for old, new in _RENAMED.items()},
    },
  )
