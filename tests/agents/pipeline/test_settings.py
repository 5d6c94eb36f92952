"""The command line of sessions, and values of parameters."""

import pytest

from agents.pipeline import session, toolbox
from agents.run import errors, references

TOY = ['--params', 'tests.agents.pipeline.toy']


@pytest.mark.parametrize(
  'argv',
  [
    TOY,
    [*TOY, '--create-session-only'],
    [*TOY, '--play'],
    [*TOY, '--play', '--dry-run'],
    [*TOY, '--dry-run'],
    ['--load-checkpoint', 'x', '--resume'],
    ['--load-checkpoint', 'x', '--play', '--dry-run'],
    ['--load-checkpoint', 'x', '--custom'],
    [*TOY, '--monitor-cpu', '--monitor-gpu'],
  ],
)
def test_what_goes_together(argv):
  session.parse_args(argv)


@pytest.mark.parametrize(
  'argv, message',
  [
    ([], 'add --params'),
    (['--load-checkpoint', 'x'], 'add one of --resume'),
    (['--load-checkpoint', 'x', '--resume', '--play'], '--play and --resume'),
    ([*TOY, '--resume'], 'add --load-checkpoint'),
    ([*TOY, '--create-session-only', '--play'], 'use only one.$'),
    ([*TOY, '--create-session-only', '--dry-run'], 'exclude each other'),
    ([*TOY, '--load-checkpoint', 'x', '--resume'], '--repeal'),
    ([*TOY, '--cpanel', '{'], 'is not valid YAML'),
    ([*TOY, '--cpanel', '[1]'], 'give a mapping such as'),
    ([*TOY, '--cpanel', '{a: {seed:3}}'], "'seed:3'; write a space"),
    ([*TOY, '--play-episodes', '-1'], 'episodes'),
    ([*TOY, '--log-level', '7'], '--log-level'),
    ([*TOY, '--visdom-port', '99999'], 'port'),
    ([*TOY, '--pley'], '--pley'),
  ],
)
def test_what_does_not(argv, message):
  with pytest.raises(errors.UsageError, match=message):
    session.parse_args(argv)


CPANEL = {
  'number_epochs': 2,
  'seed': 0,
  'lr': 0.5,
  'name': 'a',
  'flag': True,
  'free': None,
}


def test_control_panel():
  given = {'number_epochs': 3.0, 'lr': 1, 'free': 'x', '+more': 4, 'seed': None}
  result = session.update_cpanel(CPANEL, given)
  assert result == {
    **CPANEL,
    'number_epochs': 3,
    'seed': None,
    'lr': 1,
    'free': 'x',
    'more': 4,
  }
  assert type(result['number_epochs']) is int
  assert type(result['lr']) is float
  assert CPANEL['number_epochs'] == 2


@pytest.mark.parametrize(
  'given, message',
  [
    ({'number_epoch': 3}, 'Did you mean number_epochs'),
    ({'number_epochs': 'many'}, 'must be like 2'),
    ({'number_epochs': 2.5}, 'must be like 2'),
    ({'number_epochs': float('inf')}, 'must be like 2'),
    ({'flag': 1}, 'must be like True'),
    ({'lr': True}, 'must be like 0.5'),
    ({'lr': None}, 'is None; it must be like 0.5'),
  ],
)
def test_wrong_control_panel(given, message):
  with pytest.raises(errors.UsageError, match=message):
    session.update_cpanel(CPANEL, given)


def test_overrides_as_yaml():
  """JSON is YAML, too."""
  for text in ('{lr: 1e-3, "+a": {b: [1]}}', '{"lr": 1e-3, "+a": {"b": [1]}}'):
    args = session.parse_args([*TOY, '--cpanel', text])
    assert args.cpanel == {'lr': 1e-3, '+a': {'b': [1]}} and args.repeal == {}


def test_repeal():
  params = {'runner': {'n_epochs': 2}, 'a': {'b': {'c': 1, 'd': 1}}}
  given = {'runner.n_epochs': 7.0, 'a.b.c': [1], 'a.b.d': None}
  session.repeal(params, given)
  assert params['a']['b'] == {'c': [1], 'd': None}
  assert params['runner']['n_epochs'] == 7
  assert type(params['runner']['n_epochs']) is int


@pytest.mark.parametrize(
  'given, message',
  [
    ({'runner': {'n_epochs': 5}}, "is a mapping; .* 'runner.n_epochs'"),
    ({'runner.n_epochs': 'many'}, 'must be like 2'),
  ],
)
def test_wrong_repeal(given, message):
  with pytest.raises(errors.UsageError, match=message):
    session.repeal({'runner': {'n_epochs': 2}}, given)


@pytest.mark.parametrize('path', ['runner.n_epoch', 'runer', 'a.b.c.d'])
def test_repeal_of_what_is_not_there(path):
  params = {'runner': {'n_epochs': 2}, 'a': {'b': {'c': 1}}}
  with pytest.raises(errors.UsageError, match='--repeal is unknown'):
    session.repeal(params, {path: 1})


def test_help_lists_the_control_panel(capsys):
  with pytest.raises(SystemExit):
    session.parse_args([*TOY, '--help'])
  assert 'learning_rate: 0.1' in capsys.readouterr().out
  with pytest.raises(SystemExit):
    session.parse_args(['--help'])
  assert 'ddpg_pendulum' in capsys.readouterr().out


def test_modules_to_copy(tmp_path):
  with pytest.raises(errors.UsageError, match="'.' is not the name of a"):
    session.copy_modules(str(tmp_path), ['.'])


def test_names_that_need_trust():
  """What the report of a run adds to the command that continues it."""
  tree = {
    'runner': {'name': 'agents.pipeline.runner.Runner'},
    'agents': {'agent': {'name': 'my.Agent', 'args': {'demo_file': '/a/b'}}},
    'explorer': {
      'train': {
        'name': 'baselines_her.pipeline.explorer.HERExplorer',
        'args': {'env': {'name': 'own:Id-v0', 'from_module': 'registers'}},
      },
      'test': {'args': {'env': {'name': 'Pendulum-v1'}}},
      'eval': {'args': {'activation': {'reference': 'numpy:tanh'}}},
    },
  }
  found = toolbox.list_foreign(tree)
  assert found == ['/a/b', 'my', 'numpy', 'own', 'registers']
  with pytest.raises(references.NotTrusted):
    toolbox.check_names(tree['explorer']['eval'], references.NOTHING)
  assert toolbox.list_packages(tree) == ['agents', 'baselines_her']


def test_names_of_this_project():
  """A class can be written with a colon, and none but those meant for it."""
  own = {'name': 'agents.pipeline.ddpg:DDPGAgent'}
  toolbox.check_names(own, references.NOTHING)
  assert toolbox.list_foreign(own) == []
  with pytest.raises(references.NotTrusted):
    toolbox.check_names({'name': 'agents.run.files:os'}, references.NOTHING)
