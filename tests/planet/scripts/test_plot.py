"""Curves of runs of PlaNet."""

import pytest

from agents.run import errors, files, log
from agents.run.plot import group
from planet.scripts import plot


def make_run(root, name, tasks=('dummy',), offset=0.0, **params):
  """Write what two epochs leave: steps 10 and 20, 100 and 200 of the world."""
  folder = str(root / name)
  writer = log.MetricsWriter(folder)
  params = {**params, 'tasks': list(tasks)}
  source = {'config': 'debug', 'params': params, 'seed': 0}
  files.write_yaml(f'{folder}/config.yaml', source)
  for epoch in (1, 2):
    scalars = {'graph/general/objectives/image': -epoch, 'a/b': 1}
    train, end = 10 * epoch - 5, 10 * epoch
    values = {'test_return': epoch + offset}
    tag = f'graph/simulation/test_main_{tasks[0]}/return'
    writer.write('train', train, train, scalars, 9 * end)
    writer.write('epoch', epoch, end, values, 10 * end)
    writer.write('test', end, end, {tag: 7}, 10 * end)
  return folder


@pytest.mark.parametrize(
  'axis, ends, between',
  [
    ('env_steps', [100, 200], [90, 180]),
    ('global_step', [10, 20], [5, 15]),
    ('epoch', [1, 2], [1, 1.5]),
  ],
)
def test_abscissas(tmp_path, axis, ends, between):
  """Those of losses are told, or lie between those of epochs."""
  run = plot.load_run(make_run(tmp_path, 'a'), axis)
  points = {k: [v.tolist() for v in x] for k, x in run.curves.items()}
  assert points['return/test'] == [ends, [1, 2]]
  assert points['loss/image'] == [between, [1, 2]]
  assert points['a/b'] == [between, [1, 1]]
  assert not [x for x in points if x.endswith('_steps')]


def test_groups(tmp_path):
  """Seeds belong together; other parameters and tasks do not."""
  paths = [
    make_run(tmp_path, 'a'),
    make_run(tmp_path, 'b', max_steps=7),
    make_run(tmp_path, 'e', total_env_steps=9, checkpoint_minutes=1),
    make_run(tmp_path, 'c', model='ssm'),
    make_run(tmp_path, 'd', ['dummy', 'other']),
  ]
  groups = group(plot.load_run(x) for x in paths)
  assert {k: len(v) for k, v in groups.items()} == {
    'debug: dummy': 3,
    'debug: dummy, model ssm': 1,
    'debug: dummy, other': 1,
  }
  # Returns of several tasks have no common mean.
  several = groups['debug: dummy, other'][0].curves
  assert 'return/test' not in several and 'return/test_main_dummy' in several


def test_tasks_of_the_preset(tmp_path):
  """They count where the command gave none."""
  folder = make_run(tmp_path, 'a')
  for preset, task in [('cpu', 'cartpole_balance'), ('debug', 'cheetah_run')]:
    files.write_yaml(f'{folder}/config.yaml', {'config': preset, 'params': {}})
    assert plot.load_run(folder).label == f'{preset}: {task}'


def test_program(tmp_path, capsys):
  for number in range(2):
    make_run(tmp_path / 'runs', f'0000{number}', offset=number)
  words = [str(tmp_path / 'runs'), '--out', str(tmp_path / 'out')]
  assert plot.run(words) == 0
  capsys.readouterr()
  assert sorted(x.name for x in (tmp_path / 'out').iterdir()) == [
    'loss_image.png',
    'return_test.png',
    'return_test_main_dummy.png',
  ]
  assert plot.run([*words, '--names', '*a/b', '--window', '2']) == 0
  assert capsys.readouterr().out == f'Wrote {tmp_path}/out/a_b.png.\n'
  # The names of earlier versions are known, too.
  words += ['--names', 'returns/test', 'objectives/*']
  assert plot.run(words) == 0
  assert capsys.readouterr().out.count('Wrote') == 2


def test_bad_input(tmp_path, capsys):
  """One sentence and exit code 2."""
  folder = make_run(tmp_path, 'a')
  (tmp_path / 'empty').mkdir()
  for words, message in (
    ([str(tmp_path / 'none')], 'There is no file or folder'),
    ([str(tmp_path / 'empty')], 'There is nothing to plot in'),
    ([folder, '--names', 'score/*'], "No variable matches 'score/*'"),
    ([folder, '--window', '0'], '--window: it is 0'),
  ):
    assert plot.run([*words, '--out', str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1
  files.write_yaml(f'{folder}/config.yaml', {'env': 'A-v0'})
  with pytest.raises(errors.UsageError, match='written by planet-train'):
    plot.load_run(folder)
