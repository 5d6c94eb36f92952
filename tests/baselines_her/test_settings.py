"""The command line against recorded results, and what is refused."""

import os

import pytest

from agents.run import errors, files, flags, folder
from baselines_her import run, settings
from tests import golden
from tests.agents.envs import odd_gymnasium


def plain(value):
  """Tuples as lists, as JSON has them."""
  if isinstance(value, (list, tuple)):
    return [plain(x) for x in value]
  return value


def test_settings_without_effect():
  words = '--q_filter=1', '--num_demo=5', '--replay_k=2'
  demos = ['q_filter, num_demo have no effect without demo_file.']
  assert read(*words).explain_unused() == demos
  assert read(*words, '--demo_file=x').explain_unused() == []
  (found,) = read('--replay_k=2', '--replay_strategy=none').explain_unused()
  assert found == 'replay_k has no effect with replay_strategy=none.'


@pytest.mark.parametrize('index', range(5))
def test_recorded(index):
  """cmdline_logger.json; the original cut values at a second equals sign."""
  entry = golden.load_json('her/cmdline_logger')['cmdline'][index]
  args, unknown = run.parse_args(entry['argv'])
  for name, wanted in entry['known'].items():
    if not any(x.startswith('--' + name) for x in entry['argv']):
      wanted = {'env': 'FetchReach-v1', 'alg': 'her'}.get(name, wanted)
    assert getattr(args, name) == wanted, name
  wanted = dict(entry['extra'])
  if 'expr' in wanted:
    wanted['expr'] = 'a=b'
  for words in (unknown, entry['unknown']):
    found = run.parse_cmdline_kwargs(words)
    assert {k: plain(v) for k, v in found.items()} == wanted


def read(*words):
  """Settings of a command line."""
  with run_flags(*words):
    return settings.Settings.make('FetchReach-v1', run._read()[1])


def run_flags(*words):
  return flags.parsed('her-train', '', run._define_all, words)


def test_settings_take_effect():
  """All in one object, wherever they were given."""
  found = read(
    '--hidden=64',
    '--lr=1e-2',
    '--gamma=0.9',
    '--replay_strategy=none',
    '--override_params={"batch_size": 16}',
    '--params={hidden: 3, n_batches: 5}',
  )
  wanted = {
    'hidden': 64,
    'Q_lr': 0.01,
    'pi_lr': 0.01,
    'gamma': 0.9,
    'replay_strategy': 'none',
    'batch_size': 16,
    'n_batches': 5,
  }
  assert {**dict(read()), **wanted} == dict(found)
  assert read().n_cycles == 10


def test_settings_of_single_environments(monkeypatch):
  """By the id, as in the original; other versions have the same."""
  own = settings.DEFAULT_ENV_PARAMS
  assert own['FetchReach-v1'] == {'n_cycles': 10}
  monkeypatch.setitem(own, 'FetchPush-v1', {'hidden': 8})
  monkeypatch.setitem(own, 'FetchPush-v4', {'hidden': 9})
  monkeypatch.setitem(own, 'Plain', {'hidden': 7})
  names = 'FetchPush-v1', 'FetchPush-v4', 'FetchReach-v4', 'Plain-v3', 'Other'
  usual = [settings.Settings.usual(x) for x in names]
  assert [x['hidden'] for x in usual] == [8, 9, 256, 7, 256]
  assert [x['n_cycles'] for x in usual] == [50, 50, 10, 50, 50]


@pytest.mark.parametrize(
  'word, wanted',
  [
    ('--clip_return=0', False),
    ('--clip_return=1', True),
    ('--clip_return=1.0', 1.0),
    ('--clip_return=2', 2.0),
    ('--relative_goals=1', True),
    ('--test_with_polyak=0', False),
    ('--q_filter=True', 1),
    ('--norm_clip=2.5', 2.5),
    ('--replay_k=0.5', 0.5),
    ('--replay_k=0', 0),
    ('--noise_eps=1.5', 1.5),
    ('--layers=0', 0),
    ('--polyak=0', 0),
    ('--T=60', 60),
    ('--clip_return=false', False),
  ],
)
def test_values_of_the_original(word, wanted):
  """Flags as numbers, numbers as flags, and fractions are taken."""
  value = getattr(read(word), word[2:].partition('=')[0])
  assert value == wanted and type(value) in (type(wanted), float)


def test_none_leaves_files_away():
  assert read('--demo_file=None', '--load_path=None') == read()


def test_no_discounting():
  """Returns without bound leave nothing to clip at."""
  with pytest.raises(errors.UsageError, match='clip_return=False'):
    read('--gamma=1')
  assert read('--gamma=1', '--clip_return=0').return_limit == float('inf')


@pytest.mark.parametrize(
  'word, message',
  [
    ('--hiden=3', 'Did you mean hidden'),
    ('--hidden=abc', 'hidden'),
    ('--hidden=2.5', 'hidden'),
    ('--hidden=0', 'hidden'),
    ('--hidden=True', 'hidden'),
    ('--hidden=3e9', '2147483647'),
    ('--layers=1e19', '9223372036854775807'),
    ('--relative_goals=2', 'True or False'),
    ('--q_filter=2', '0 or 1'),
    ('--noise_eps=-1', 'noise_eps'),
    ('--replay_k=-1', 'replay_k'),
    ('--T=1', 'T'),
    ('--random_eps=1.5', 'random_eps'),
    ('--max_u=-1', 'max_u'),
    ('--clip_return=nan', 'True, False or a positive number'),
    ('--Q_lr=.inf', 'Q_lr'),
    ('--replay_strategy=final', 'future'),
    ('--override_params={"hiden":3}', 'Did you mean hidden'),
    ('--override_params=3', 'give a mapping'),
    ('--lr=0', 'lr'),
    ('--rollout_batch_size=3', '--num_env'),
    ('--bc_loss=1', '--demo_file'),
    ('--demo_batch_size=512 --demo_file=a', 'smaller than batch_size'),
    ('--demo_batch_size=-5 --demo_file=a', 'demo_batch_size'),
    ('--scope=a-b', 'scope'),
    ('--norm_clip=-5', 'greater than 0'),
    ('--clip_obs=0', 'greater than 0'),
  ],
)
def test_bad_settings(word, message):
  with pytest.raises(errors.UsageError, match=message):
    read(*word.split())


def test_replay_holds_an_episode_of_each_environment():
  assert read('--buffer_size=100').complete(50, 2).buffer_size == 100
  with pytest.raises(errors.UsageError, match='at least 100'):
    read('--buffer_size=99').complete(50, 2)


@pytest.mark.parametrize(
  'words, message',
  [
    ('--demo_file --hidden=3', '--demo_file=--hidden=3: the value is missing'),
    ('--n_cylces', 'Flag --n_cylces is unknown. Did you mean n_cycles'),
    ('--n_cycles', '--n_cycles'),
    ('FetchPush-v1', 'FetchPush-v1'),
    ('--hidden=3 -layrs=2', 'layers'),
  ],
)
def test_words_without_a_meaning(words, message):
  """The original drops them; they may be what the user wanted."""
  with pytest.raises(errors.UsageError, match=message):
    read(*words.split())


def test_settings_are_flags(tmp_path):
  """In all spellings of absl, and the last one counts."""
  (tmp_path / 'flags').write_text('--hidden=9\n--params={layers: 4}\n')
  found = read('-hidden', '3', f'--flagfile={tmp_path}/flags', '--T', '60')
  assert (found.hidden, found.layers, found.T) == (9, 4, 60)
  with run_flags('--gamma=0.9', '--network=mlp', '--load_path=None'):
    args, given = run._read()
    assert run.FLAGS.gamma == 0.9 and run.FLAGS['gamma'].present
    assert not run.FLAGS['hidden'].present
    assert given == {'gamma': 0.9, 'load_path': None}
    assert args.env is None and args.network == 'mlp'


@pytest.mark.parametrize(
  'word, message',
  [
    ('--alg=ppo2', 'alg'),
    ('--num_timesteps=-1', 'num_timesteps'),
    ('--num_timesteps=inf', 'num_timesteps'),
    ('--num_env=0', 'num_env'),
    ('--seed=-1', 'seed'),
    ('--seed=a', '--help'),
  ],
)
def test_bad_flags(word, message):
  with pytest.raises(errors.UsageError, match=message):
    read(word)


def test_unwritable_paths(tmp_path, capsys):
  (tmp_path / 'file').write_text('')
  path = f'{tmp_path}/file/x'
  for word, message in (
    (f'--log_path={path}', 'Cannot write'),
    (f'--save_path={path}', 'Cannot write'),
    (f'--policy_dir={path}', 'Cannot write'),
    (f'--save_path={tmp_path}', 'is a folder'),
  ):
    new = f'--log_path={tmp_path}/new'
    assert run.run(['program', new, word]) == 2
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == ['file']


@pytest.mark.parametrize(
  'names',
  ['config.yaml metrics.jsonl', 'config.yaml PING', 'params.yaml cpanel.json'],
)
def test_run_of_another_system(names, tmp_path, capsys):
  """Its curves would be replaced; a file of the user is not in the way."""
  names = names.split()
  for name in names:
    (tmp_path / name).write_text('{}\n')
  args = ['program', f'--log_path={tmp_path}', '--num_timesteps=0']
  assert run.run(args) == 2
  assert 'a run of another program in' in capsys.readouterr().err
  assert sorted(os.listdir(tmp_path)) == sorted(names)
  for name in names:
    assert (tmp_path / name).read_text() == '{}\n'
  folder.check_free(str(tmp_path / 'new'))
  (tmp_path / names[1]).unlink()
  folder.check_free(str(tmp_path))


def test_run_of_the_original(tmp_path, capsys):
  """Its curves and episodes would be replaced."""
  contents = {
    'params.json': '{"env_name": "FetchReach-v1", "replay_strategy": "future"}',
    'progress.csv': 'epoch,test/success_rate\n0,1\n',
    '0.0.monitor.csv': '#{"t_start": 1.0}\nr,l,t\n-50.0,50,5.4\n',
  }
  for name, text in contents.items():
    (tmp_path / name).write_text(text)
  args = ['program', f'--log_path={tmp_path}', '--num_timesteps=0']
  assert run.run(args) == 2
  assert 'a run of baselines in' in capsys.readouterr().err
  assert {x.name: x.read_text() for x in tmp_path.iterdir()} == contents


def test_refused_arguments_leave_no_folder(tmp_path, capsys):
  """Also what only the agent or the environment finds; old folders stay."""
  (tmp_path / 'old').mkdir()
  (tmp_path / 'weights').write_bytes(b'none')
  env = f'--env={odd_gymnasium.MODULE}:OddGoalNaN-v0'
  weights = f'--load_path={tmp_path}/weights'
  for words, code, message in (
    ([weights], 2, 'Cannot load variables'),
    (['--load_path=none'], 2, "Cannot load variables from 'none'"),
    ([env], 1, 'in step 1 is NaN; return finite'),
  ):
    path = f'--log_path={tmp_path}/new/run'
    args = ['--num_timesteps=100', '--hidden=4', *words]
    assert run.run(['program', path, *args]) == code
    assert message in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ['old', 'weights']
  run.run(['program', f'--log_path={tmp_path}/old', weights, '--hidden=4'])
  assert (tmp_path / 'old').exists()


@pytest.mark.parametrize(
  'error', [errors.UsageError('refused'), OSError('no TMPDIR')]
)
def test_what_is_kept_when_a_run_is_refused(error, tmp_path):
  """Runs that have begun, and what others have written beside a new one."""
  run_path, beside = tmp_path / 'a' / 'run', tmp_path / 'a' / 'beside'
  for has_begun, begun in ((bool, False), (lambda: True, True)):
    missing = files.first_missing(str(run_path))
    assert missing == str(run_path if beside.exists() else tmp_path / 'a')
    run_path.mkdir(parents=True)
    beside.mkdir(exist_ok=True)
    with pytest.raises(type(error)):
      with folder.removed_if_refused(str(run_path), missing, has_begun):
        raise error
    assert run_path.exists() == begun and beside.exists()
