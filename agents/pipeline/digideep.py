"""Parameter files of digideep, translated for the pipeline.

Such a file runs after its import line is changed to

  from agents.pipeline.digideep import MakeEnvironment

Its agent must be DDPG or PPO on vectors; that of PPO becomes the one of this
project. Everything else is named at once, with what takes its place.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from agents.pipeline import env_config
from agents.pipeline.params import ddpg_pendulum, ppo_pendulum
from agents.run import errors

_PAGE = 'See docs/coming-from.md.'
_AGENTS = {
  'digideep.agent.ddpg.Agent': 'ddpg',
  'digideep.agent.ppo.Agent': 'ppo',
}
_NORMALIZERS = 'digideep.environment.wrappers.normalizers.'
# Names of digideep that mean nothing here, and what to do instead.
_MISSING = {
  'digideep.agent.sac': 'use digideep.agent.ddpg for continuous actions',
  'digideep.agent.noises': (
    'use digideep.agent.noises.OrnsteinUhlenbeckNoise, or random actions at '
    'first: warm_start'
  ),
  'digideep.memory': (
    'use digideep.memory.ringbuffer for DDPG; memories are stored by '
    'runner.memory_save'
  ),
  'digideep.environment.wrappers': (
    'write it as a wrapper of gymnasium, and register the wrapped environment '
    'under an id of your own'
  ),
  'digideep.environment.dmc2gym': (
    'planet-train has the control suite; for the pipeline, register an '
    'environment of your own'
  ),
  'torch.optim': 'use torch.optim.Adam',
}
# Wrappers for images, which need convolutions, too.
_IMAGES = (
  'WrapperTransposeImage',
  'VecFrameStackAxis',
  'VecImageTranspose',
)


class MakeEnvironment:
  """Describes an environment, under the name and with arguments of digideep.

  Args:
    session: Unused.
    mode: Unused.
    seed: Unused, as nothing is played.
    **params: Node `env` of the parameters.
  """

  def __init__(
    self, session: Any = None, mode: Any = None, seed: int = 1, **params: Any
  ):
    del session, mode, seed
    self._params = params

  def get_config(self) -> dict[str, Any]:
    """Return the spaces of the environment, with digideep's names of paths.

    Raises:
      UsageError: If it does not exist or is not supported.
    """
    problems: list[str] = []
    node = _define_env(self._params, problems)
    _refuse(problems)
    config = _inspect(node)
    spaces = config['observation_space']
    return {
      **config,
      'observation_space': {f'/{key}': x for key, x in spaces.items()},
    }


def translate(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
  """Translate a parameter tree of digideep.

  Args:
    params: Result of a function `gen_params` of digideep.

  Returns:
    Tuple of a tree of the pipeline, and sentences about what it leaves out.

  Raises:
    UsageError: Names all that the pipeline does not have, and what to use.
  """
  try:
    return _translate(params)
  except KeyError as error:
    raise errors.UsageError(
      f'The parameters have no key {error}, which those of digideep have. '
      f'{_PAGE}'
    ) from None


def _translate(params):
  problems = list(_find_missing(params))
  notes: list[str] = []
  env = _define_env(params['env'], problems)
  _refuse(problems)
  (name,) = params['agents']
  node = params['agents'][name]
  env['config'] = _inspect(env)
  kind = _AGENTS[node['type']]
  define = {'ddpg': _define_ddpg, 'ppo': _define_ppo}[kind]
  tree = define(params, name, node, env, notes)
  return {
    'runner': _define_runner(params, kind, notes),
    'tf': {'intra_op': 1, 'inter_op': 1},
    'env': env,
    **tree,
  }, notes


def _inspect(env):
  """Describe an environment without its wrappers."""
  return env_config.inspect({k: env[k] for k in env if k != 'wrappers'})


def _refuse(problems):
  if problems:
    raise errors.UsageError(
      'The pipeline does not have everything that these parameters of '
      f'digideep need: {"; ".join(dict.fromkeys(problems))}. {_PAGE}'
    )


def _find_missing(params):
  """Yield a phrase for each part that the pipeline does not have."""
  nodes = params['agents']
  if len(nodes) != 1:
    yield f'{len(nodes)} agents, use one'
  for node in nodes.values():
    if node['type'] not in _AGENTS:
      yield _advise(node['type'])
    noise = node.get('noisename', '')
    if noise and not noise.endswith('.OrnsteinUhlenbeckNoise'):
      yield _advise(noise)
    for key, value in node.items():
      if key.startswith('optimname') and value != 'torch.optim.Adam':
        yield _advise(value)
    if node['policyname'].rpartition('.')[0] not in {
      x.rpartition('.')[0] for x in (node['type'], *_AGENTS)
    }:
      yield f'{node["policyname"]}, use that of its agent'
    policy = node.get('policyargs', {})
    average = policy.get('average_args', {})
    if average.get('mode', 'soft') != 'soft':
      yield 'average_args with mode hard, use mode soft'
    if policy.get('hidden_size', 256) != 256 and 'ddpg' in node['type']:
      yield (
        f'hidden_size {policy["hidden_size"]}, use 256, or own networks as in '
        'docs/examples/my_params.py'
      )
    for name in node.get('sampler_list', ()):
      if name != 'digideep.agent.ddpg.sampler.sampler_re':
        yield f'{name}, use digideep.agent.ddpg.sampler.sampler_re'
  runner = params['runner'].get('name', '')
  if runner != 'digideep.pipeline.Runner':
    yield (
      f'the runner {runner}, derive it from agents.pipeline.runner.Runner and '
      'set runner.name by --repeal'
    )
  for node in params['memory'].values():
    if node['type'] not in (
      'digideep.memory.ringbuffer.Memory',
      'digideep.memory.rollbuffer.Memory',
    ):
      yield _advise(node['type'])


def _advise(name):
  """Return a phrase about a name that is missing."""
  for prefix in sorted(_MISSING, key=len, reverse=True):
    if name.startswith(prefix):
      return f'{name}, {_MISSING[prefix]}'
  return f'{name}, derive yours from one of agents.pipeline (docs/pipeline.md)'


def _define_env(node, problems):
  """Translate an environment; appends phrases about what is missing."""
  module = node.get('from_module') or ''
  if module.startswith('digideep.'):
    problems.append(_advise(module))
    module = ''
  if node.get('from_params'):
    problems.append(
      'from_params, register the environment in a module and name it as '
      'from_module'
    )
  found: dict[str, Any] = {'name': node['name'], 'from_module': module}
  for wrapper in _list_wrappers(node):
    short = wrapper['name'].rpartition('.')[2]
    if short in _IMAGES:
      problems.append(f'{short}, train on vectors, or on images with ppo-train')
    elif short == 'WrapperNormalizeActDict':
      found['wrappers'] = [
        {
          'name': 'agents.tools.wrappers.RangeNormalize',
          'args': {'observ': False, 'action': True},
        }
      ]
    elif short not in (
      'VecNormalizeObsDict',
      'VecNormalizeRew',
      # Observations are dictionaries here in any case.
      'WrapperLevelDictObs',
    ):
      problems.append(_advise(wrapper['name']))
  return found


def _list_wrappers(node) -> Iterator[dict[str, Any]]:
  for stack in ('norm_wrappers', 'vect_wrappers'):
    for wrapper in node.get(stack, ()):
      if wrapper.get('enabled', True):
        yield wrapper


def _define_runner(params, kind, notes):
  given = params['runner']
  if given.get('randargs', {}).get('cuda_deterministic'):
    notes.append('cuda_deterministic has no effect.')
  mode = 'test' if given['test_act'] else 'train'
  return {
    'name': 'agents.pipeline.runner.Runner',
    **{
      x: given[x]
      for x in (
        *('n_cycles', 'n_epochs', 'max_time', 'max_iter'),
        *('test_act', 'test_int', 'save_int'),
      )
    },
    'randargs': {'seed': given['randargs']['seed']},
    'keep_checkpoints': 5,
    'memory_save': 'final' if kind == 'ddpg' else 'every',
    'score': f'/reward/{mode}/episodic',
  }


def _define_ddpg(params, name, node, env, notes):
  noise = node.get('noiseargs', {})
  memory = params['memory']['train']['args']
  panel = {
    **ddpg_pendulum.cpanel,
    'memory_size_in_chunks': memory['buffer_chunk_len'],
    'observation_key': node['observation_path'].removeprefix('/'),
    'gamma': node['methodargs']['gamma'],
    'n_steps': memory['chunk_sample_len'],
    'n_update': node['methodargs']['n_update'],
    'batch_size': node['sampler_args']['batch_size'],
    'lr_actor': node['optimargs_actor']['lr'],
    'lr_critic': node['optimargs_critic']['lr'],
    'polyak_factor': node['policyargs']['average_args']['polyak_factor'],
    'noise_mu': float(noise.get('mu', 0)),
    'noise_theta': float(noise.get('theta', 0.15)),
    'noise_sigma': float(noise.get('sigma', 0.2)),
  }
  return {
    'memory': ddpg_pendulum.define_memory(panel),
    'agents': {name: ddpg_pendulum.define_agent(panel, _see_actions(env))},
    'explorer': {
      mode: _define_explorer(mode, given, env, params, notes)
      for mode, given in params['explorer'].items()
    },
  }


def _see_actions(env):
  """Return the spaces of an environment with its wrapper of actions."""
  config = env['config']
  if not env.get('wrappers'):
    return config
  ones = [1.0] * config['action_space']['agent']['dim'][0]
  scaled = {
    **config['action_space']['agent'],
    'lim': [[-x for x in ones], ones],
  }
  return {**config, 'action_space': {'agent': scaled}}


def _define_explorer(mode, given, env, params, notes):
  """Translate the settings of an explorer of DDPG."""
  stacks = {
    x['name'].removeprefix(_NORMALIZERS): x.get('args', {})
    for x in _list_wrappers(params['env'])
  }
  observ = stacks.get('VecNormalizeObsDict')
  reward = stacks.get('VecNormalizeRew')
  scaled = observ or reward or {}
  if given.get('extra_env_kwargs'):
    env = {**env, 'kwargs': given['extra_env_kwargs']}
  if given.get('render_delay'):
    notes.append(f'render_delay of the {mode} explorer has no effect.')
  workers = given['num_workers']
  args = {
    'env': env,
    'num_workers': workers,
    'n_steps': given.get('n_steps') or 0,
    'n_episodes': given.get('n_episodes') or 0,
    # Steps of all workers, which digideep counts as one.
    'warm_start': given.get('warm_start', 0) * workers,
    'seed': given['seed'],
    'normalize_observations': observ is not None,
    'normalize_rewards': reward is not None,
    'clip': float(scaled.get('clip', 10)),
    'gamma': float((reward or {}).get('gamma', 0.99)),
  }
  same = ['final_action', 'deterministic', 'win_size']
  # An explorer that only plays begins with new episodes.
  same += [] if mode == 'eval' else ['do_reset']
  args.update((x, given[x]) for x in same if x in given)
  return {'name': 'agents.pipeline.gym_explorer.GymExplorer', 'args': args}


def _define_ppo(params, name, node, env, notes):
  """Translate to the PPO of this project, which learns from whole episodes."""
  explorer, method = params['explorer']['train'], node['methodargs']
  advantages = node['sampler']['compute_advantages']
  model = node['policyargs'].get('modelargs', {})
  workers, steps = explorer['num_workers'], explorer['n_steps']
  limit = env['config']['max_episode_steps'] or steps
  episodes = workers * math.ceil(max(1, steps / limit))
  size = model.get('output_size', 64)
  ppo: dict[str, Any] = {
    'max_length': limit,
    'policy_layers': [size, size],
    'value_layers': [size, size],
    'eval_episodes': params['explorer']['test']['n_episodes'],
  }
  if advantages.get('use_gae'):
    ppo['gae_lambda'] = advantages['tau']
  if env['config']['action_space']['agent']['typ'] == 'Discrete':
    ppo['network'] = 'feed_forward_categorical'
  elif model.get('recurrent'):
    ppo['network'] = 'recurrent_gaussian'
  left = [
    x
    for x in (
      *('clip_param', 'value_loss_coef', 'entropy_coef', 'max_grad_norm'),
      'use_clipped_value_loss',
    )
    if x in method
  ]
  notes.append(
    'The PPO of this project has a penalty in place of clipping, and updates '
    f'after {episodes} whole episodes; it leaves out num_mini_batches, '
    f'{", ".join(left)}, and normalizes observations and rewards itself.'
  )
  given = params['runner']
  panel = {
    **ppo_pendulum.cpanel,
    'config': 'default',
    'model_name': ':'.join(filter(None, (env['from_module'], env['name']))),
    'number_epochs': given['n_epochs'],
    'epoch_size': given['n_cycles'],
    'test_activate': given['test_act'],
    'test_interval': given['test_int'],
    'save_interval': given['save_int'],
    'seed': given['randargs']['seed'],
    'num_workers': workers,
    'n_episodes': episodes,
    'n_update': method['n_update'],
    'gamma': advantages['gamma'],
    'learning_rate': node['optimargs']['lr'],
    'ppo': ppo,
  }
  tree = ppo_pendulum.gen_params(panel)
  if name != 'agent':
    notes.append(f'The agent {name} is called agent.')
  return {x: tree[x] for x in ('env', 'memory', 'agents', 'explorer')}
