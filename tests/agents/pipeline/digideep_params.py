"""A parameter file with the shape of those of digideep.

`agent_type` of the control panel chooses DDPG or PPO.
"""

from agents.pipeline.digideep import MakeEnvironment

cpanel = {
  'number_epochs': 2,
  'epoch_size': 3,
  'agent_type': 'digideep.agent.ddpg.Agent',
  'model_name': 'Pendulum-v0',
  'num_workers': 2,
  'n_steps': 5,
  'normalize': True,
  'use_gae': True,
}


def gen_params(cpanel):
  kind = cpanel['agent_type']
  names = 'digideep.environment.wrappers.normalizers.'
  env = {
    'name': cpanel['model_name'],
    'from_module': cpanel.get('from_module', ''),
    'from_params': False,
    'main_wrappers': {'Monitor': {}},
    'norm_wrappers': [
      {
        'name': names + 'WrapperNormalizeActDict',
        'args': {'paths': ['agent']},
        'enabled': cpanel['normalize'],
      },
      {'name': cpanel.get('wrapper', 'unused'), 'enabled': 'wrapper' in cpanel},
    ],
    'vect_wrappers': [
      {
        'name': names + 'VecNormalizeObsDict',
        'args': {'paths': ['/agent'], 'clip': 5},
        'enabled': cpanel['normalize'],
      }
    ],
  }
  env['config'] = MakeEnvironment(mode=None, seed=1, **env).get_config()
  space = env['config']['observation_space']['/agent']
  explorer = {
    'env': env,
    'do_reset': False,
    'final_action': False,
    'warm_start': 10,
    'num_workers': cpanel['num_workers'],
    'deterministic': False,
    'n_steps': cpanel['n_steps'],
    'n_episodes': None,
    'win_size': 20,
    'render_delay': 0,
    'seed': 90,
    'extra_env_kwargs': {},
  }
  test = {**explorer, 'n_steps': None, 'n_episodes': 2, 'deterministic': True}
  ddpg = {
    'observation_path': '/agent',
    'methodargs': {'n_update': 4, 'gamma': 0.9},
    'sampler_list': ['digideep.agent.ddpg.sampler.sampler_re'],
    'sampler_args': {'batch_size': 16},
    'policyargs': {
      'obs_space': space,
      'hidden_size': 256,
      'average_args': {'mode': 'soft', 'polyak_factor': 0.01},
    },
    'noisename': cpanel.get(
      'noise', 'digideep.agent.noises.OrnsteinUhlenbeckNoise'
    ),
    'noiseargs': {'mu': 0, 'theta': 0.15, 'sigma': 0.3, 'lim': 2.0},
    'optimname_actor': 'torch.optim.Adam',
    'optimargs_actor': {'lr': 0.002},
    'optimname_critic': 'torch.optim.Adam',
    'optimargs_critic': {'lr': 0.003},
  }
  ppo = {
    'methodargs': {'n_update': 4, 'clip_param': 0.2},
    'sampler': {
      'compute_advantages': {
        'gamma': 0.9,
        'tau': 0.95,
        'use_gae': cpanel['use_gae'],
      }
    },
    'policyargs': {'modelargs': {'recurrent': False, 'output_size': 8}},
    'optimname': 'torch.optim.Adam',
    'optimargs': {'lr': 0.002},
  }
  own = ppo if 'ppo' in kind else ddpg
  buffer = 'rollbuffer' if 'ppo' in kind else 'ringbuffer'
  return {
    'env': env,
    'runner': {
      'name': 'digideep.pipeline.Runner',
      'max_time': None,
      'max_iter': None,
      'n_cycles': cpanel['epoch_size'],
      'n_epochs': cpanel['number_epochs'],
      'randargs': {'seed': 7, 'cuda_deterministic': False},
      'test_act': True,
      'test_int': 1,
      'save_int': 1,
    },
    'agents': {
      'agent': {
        'name': 'agent',
        'type': kind,
        'policyname': kind.replace('Agent', 'Policy'),
        **own,
      }
    },
    'memory': {
      'train': {
        'type': f'digideep.memory.{buffer}.Memory',
        'args': {'chunk_sample_len': 5, 'buffer_chunk_len': 50},
      }
    },
    'explorer': {
      'train': explorer,
      'test': test,
      'eval': {**test, 'num_workers': 1, 'n_episodes': 1, 'win_size': -1},
    },
  }
