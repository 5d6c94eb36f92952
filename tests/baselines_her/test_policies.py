"""Files of policies: plain data that anybody may have written."""

import os
import pickle
import sys
import types

import numpy as np
import pytest

import baselines_her
from agents.envs import window
from agents.run import checkpoint, errors, references
from baselines_her import play, plot, run
from tests.agents import hostile
from tests.baselines_her import test_library


@pytest.fixture(scope='module')
def logdir(tmp_path_factory):
  """A run of the module of odd environments."""
  folder = str(tmp_path_factory.mktemp('run'))
  list(test_library.train(folder, 1, 5))
  return folder


@pytest.mark.parametrize(
  'place, value',
  [
    (('settings', 'network_class'), 'hostile:X'),
    (('settings', 'network_class'), 'baselines_her.play:run'),
    (('env_name',), 'hostile:E-v0'),
  ],
)
def test_hostile_policies(logdir, tmp_path, monkeypatch, capsys, place, value):
  """A policy may not name modules, unless the command does."""
  marker = hostile.plant(str(tmp_path), monkeypatch)
  tree = checkpoint.read_tree(os.path.join(logdir, 'policies', 'policy_best'))
  node = tree
  for key in place[:-1]:
    node = node[key]
  node[place[-1]] = value
  tree['env_name'] = tree['env_name'] if place[0] != 'settings' else 'Any-v0'
  checkpoint.write_tree(str(tmp_path / 'policy'), tree)
  with pytest.raises(references.NotTrusted, match='add --trust'):
    baselines_her.load(str(tmp_path))
  assert play.run([str(tmp_path), '--render=0']) == 2
  assert value in capsys.readouterr().err
  assert not os.path.exists(marker)


def test_modules_that_the_command_trusts(logdir):
  """The environment of the run lies in a module of the user."""
  with pytest.raises(references.NotTrusted, match='odd_envs'):
    baselines_her.load(logdir)
  module = 'tests.baselines_her.odd_envs'
  assert play.run([logdir, '--render=0', '--trust', module]) == 0


def pickle_as_the_original(monkeypatch, path, **state):
  """Write what `pickle.dump(policy)` of baselines writes."""
  modules = 'baselines', 'baselines.her', 'baselines.her.ddpg'
  config = 'baselines.her.experiment.config'
  with monkeypatch.context() as patch:
    for name in (*modules, config):
      patch.setitem(sys.modules, name, types.ModuleType(name))
    agent = type('DDPG', (), {'__module__': modules[-1]})
    subtract = types.FunctionType((lambda a, b: a - b).__code__, {})
    subtract.__module__ = config
    subtract.__name__ = subtract.__qualname__ = 'simple_goal_subtract'
    sys.modules[modules[-1]].DDPG = agent
    sys.modules[config].simple_goal_subtract = subtract
    policy = agent()
    vars(policy).update(subtract_goals=subtract, **state)
    path.write_bytes(pickle.dumps(policy))


def test_policies_of_the_original(logdir, tmp_path, monkeypatch):
  """They act here without its code, and name what is not known here."""
  best = os.path.join(logdir, 'policies', 'policy_best')
  tree = checkpoint.read_tree(best)
  state = {
    **{k: v for k, v in tree['settings'].items() if k != 'lr'},
    'network_class': 'baselines.her.actor_critic:ActorCritic',
    'clip_return': 1 / (1 - tree['settings']['gamma']),
    'input_dims': tree['dims'],
    'info': {'env_name': tree['env_name']},
    'tf': tree['weights'],
    'dimo': tree['dims']['o'],
    'use_mpi': True,
  }
  path = tmp_path / 'policy_best.pkl'
  pickle_as_the_original(monkeypatch, path, **state)
  with pytest.raises(errors.UsageError, match=f'name the file itself: {path}'):
    baselines_her.load(tmp_path)
  with (
    baselines_her.load(path) as theirs,
    baselines_her.load(f'{best}.pkl') as ours,
  ):
    observation, _ = ours.make_env().reset()
    wanted, _ = ours.predict(observation, deterministic=True)
    found, _ = theirs.predict(observation, deterministic=True)
    np.testing.assert_array_equal(found, wanted)
    for key in ('clip_return', 'network_class'):
      state[key] = getattr(theirs.policy, key)
    assert state['clip_return'] == pytest.approx(ours.policy.clip_return)
    assert state['network_class'] == ours.policy.network_class
  pickle_as_the_original(monkeypatch, path, **{**state, 'tf': state['tf'][1:]})
  with pytest.raises(errors.UsageError, match='Cannot load a policy'):
    baselines_her.load(path)
  del state['info']
  pickle_as_the_original(monkeypatch, path, **state)
  with pytest.raises(errors.UsageError, match="Cannot load a policy.*'info'"):
    baselines_her.load(path)


def test_a_file_takes_the_place_of_a_window(logdir, monkeypatch):
  asked = []

  def find_problem(env, has_window, limit):
    asked.append(has_window)
    return 'It is dark.'

  monkeypatch.setattr(window, 'has_display', lambda: True)
  monkeypatch.setattr(play, 'find_problem', find_problem)
  words = [
    logdir,
    '--n_test_rollouts=1',
    '--trust=tests.baselines_her.odd_envs',
  ]
  assert play.run(words) == 0
  assert play.run([*words, '--video=x.mp4']) == 0
  assert asked == [True, False]


def test_pickles_are_opened_only_by_their_names(logdir, tmp_path, capsys):
  """A folder of which only the pickle is left names it, and stays closed."""
  marker = tmp_path / 'was_here'
  (tmp_path / 'policies').mkdir()
  path = tmp_path / 'policies' / 'policy_best.pkl'
  path.write_bytes(f"cposix\nsystem\n(S'touch {marker}'\ntR.".encode())
  assert play.run([str(tmp_path), '--render=0']) == 2
  assert f'name the file itself: {path}' in capsys.readouterr().err
  for name in ('policy_best.json', 'policy_best.npz'):
    source = os.path.join(logdir, 'policies', name)
    (tmp_path / 'policies' / name).write_bytes(open(source, 'rb').read())
  baselines_her.load(
    str(tmp_path), trust=['tests.baselines_her.odd_envs']
  ).close()
  assert not marker.exists()
  pickled = os.path.join(logdir, 'policies', 'policy_best.pkl')
  baselines_her.load(pickled).close()


@pytest.mark.parametrize(
  'text', ['{', '[]', '{"version": 1}', '{"version": 9}']
)
def test_malformed_files(logdir, tmp_path, capsys, text):
  """One sentence, from all that read them."""
  (tmp_path / 'policy.json').write_text(text)
  with open(os.path.join(logdir, 'policies', 'policy_best.npz'), 'rb') as file_:
    (tmp_path / 'policy.npz').write_bytes(file_.read())
  with pytest.raises(errors.UsageError, match='Cannot load a policy'):
    baselines_her.load(str(tmp_path))
  assert play.run([str(tmp_path), '--render=0']) == 2
  (tmp_path / 'checkpoints' / '000000001').mkdir(parents=True)
  for name in ('rank0.json', 'COMPLETE'):
    (tmp_path / 'checkpoints' / '000000001' / name).write_text('{}')
  (tmp_path / 'params.json').write_text(text)
  (tmp_path / 'progress.csv').write_text('epoch,test/success_rate\n0,1\n')
  assert run.run(['run', f'--log_path={tmp_path}']) == 2
  assert plot.run([str(tmp_path), f'--out={tmp_path}']) == 2
  lines = capsys.readouterr().err.strip().splitlines()
  # The first run in a process also names the maintained environment.
  assert [x for x in lines if 'no longer exists' not in x] == [
    x for x in lines if x.startswith('Error: ')
  ]
  assert sum(x.startswith('Error: ') for x in lines) == 3


def test_flipped_bits_are_noticed(logdir, tmp_path):
  """Wherever they are: the policy is refused, or is the same."""
  source = os.path.join(logdir, 'policies', 'policy_best')
  tree = checkpoint.read_tree(source)
  wanted = tree['weights']
  checkpoint.write_tree(
    str(tmp_path / 'policy'), {**tree, 'env_name': 'FetchReach-v1'}
  )
  data = bytearray((tmp_path / 'policy.npz').read_bytes())
  refused = 0
  for place in range(0, len(data), len(data) // 12):
    data[place] ^= 16
    (tmp_path / 'policy.npz').write_bytes(data)
    data[place] ^= 16
    try:
      with baselines_her.load(str(tmp_path)) as agent:
        found = agent.policy.__getstate__()['tf']
        assert all((x == y).all() for x, y in zip(found, wanted, strict=True))
    except errors.UsageError:
      refused += 1
  assert refused > 6
