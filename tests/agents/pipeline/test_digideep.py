"""Parameter files of digideep."""

import json

import pytest

from agents.pipeline import session, toolbox
from agents.run import errors
from tests import processes

NAME = 'tests.agents.pipeline.digideep_params'
PPO = {'agent_type': 'digideep.agent.ppo.Agent'}


def find_names(tree):
  """Values of all keys `name` that have a dot."""
  if isinstance(tree, dict):
    for key, value in tree.items():
      if key == 'name' and '.' in value:
        yield value
      yield from find_names(value)
  elif isinstance(tree, list):
    for value in tree:
      yield from find_names(value)


@pytest.mark.parametrize('given', [{}, PPO])
def test_tree(given):
  """Plain, with classes that exist."""
  _, tree = session.generate(NAME, given)
  assert json.loads(json.dumps(tree)) == tree
  names = set(find_names(tree))
  assert len(names) > 4
  for name in names:
    assert callable(toolbox.get_class(name))
  assert tree['runner']['n_cycles'] == 3 and tree['runner']['n_epochs'] == 2
  assert tree['runner']['randargs'] == {'seed': 7}


def test_ddpg():
  """Settings that have other names here."""
  _, tree = session.generate(NAME, {})
  policy = tree['agents']['agent']['policy']['args']
  assert policy['gamma'] == 0.9 and policy['polyak'] == 0.01
  assert policy['actor_rate'] == 0.002 and policy['critic_rate'] == 0.003
  memory = tree['memory']['train']['args']
  assert memory['chunk_sample_len'] == 5 and memory['buffer_chunk_len'] == 50
  assert tree['agents']['agent']['sampler']['args']['batch_size'] == 16
  args = tree['agents']['agent']['args']
  assert args['n_update'] == 4 and args['observation_key'] == 'agent'
  assert args['noise'] == {'mu': 0, 'theta': 0.15, 'sigma': 0.3}
  # Seen through the wrapper that scales actions.
  assert args['action_space']['lim'] == [[-1], [1]]
  explorer = tree['explorer']['train']['args']
  # Counted over both workers.
  assert explorer['warm_start'] == 20 and explorer['n_steps'] == 5
  assert explorer['normalize_observations'] and explorer['clip'] == 5


@pytest.mark.parametrize('use_gae', [True, False])
def test_ppo(use_gae):
  notes = []
  _, tree = session.generate(NAME, {**PPO, 'use_gae': use_gae}, notes)
  config = tree['agents']['agent']['policy']['args']['config']
  assert config.get('gae_lambda') == (0.95 if use_gae else None)
  assert config['discount'] == 0.9 and config['learning_rate'] == 0.002
  assert config['update_epochs'] == 4 and config['policy_layers'] == [8, 8]
  assert 'clip_param' in ' '.join(notes)


@pytest.mark.parametrize(
  'given, sentence',
  [
    ({'agent_type': 'digideep.agent.sacv2.Agent'}, 'use digideep.agent.ddpg'),
    ({'+noise': 'digideep.agent.noises.EGreedyNoise'}, 'OrnsteinUhlenbeck'),
    ({'+from_module': 'digideep.environment.dmc2gym'}, 'planet-train has'),
    (
      {
        '+wrapper': 'digideep.environment.wrappers.normal.WrapperTransposeImage'
      },
      'ppo-train',
    ),
  ],
)
def test_missing(given, sentence):
  with pytest.raises(errors.UsageError, match=sentence) as caught:
    session.generate(NAME, given)
  assert 'docs/coming-from.md' in str(caught.value)


def test_import_line(tmp_path, monkeypatch):
  """A file as it is: told which line to write."""
  (tmp_path / 'as_it_was.py').write_text(
    'from digideep.environment import MakeEnvironment\n'
  )
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(errors.UsageError, match='from agents.pipeline.digideep'):
    session.generate('as_it_was', {})


@pytest.mark.slow
@pytest.mark.parametrize('given', [{}, PPO])
def test_session(given):
  output = processes.run_python(
    *('-m', 'scripts.main', '--params', NAME, '--dry-run'),
    *('--cpanel', json.dumps(given), '--no-monitor-cpu', '--no-monitor-gpu'),
  )
  assert 'Finished after 2 epochs' in output
