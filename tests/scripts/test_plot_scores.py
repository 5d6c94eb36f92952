"""Curves of scores: which files are read, and which seeds become one line."""

import pytest

from agents import plot_scores
from agents.run import errors, files, plot


def write(path, scores, seeds=(None,)):
  """Write a table of scores."""
  path.parent.mkdir(parents=True, exist_ok=True)
  lines = ['global_step,phase,mean_score' + ',seed' * (seeds != (None,))]
  for seed in seeds:
    end = '' if seed is None else f',{seed}'
    lines += [f'{100 * i},eval,{x}{end}' for i, x in enumerate(scores)]
    lines += [f'50,train,-1{end}']
  path.write_text('\n'.join(lines) + '\n')
  return str(path)


def make_run(root, number, env, scores=(1, 2), **config):
  """Write what a training leaves."""
  folder = root / f'2026112{number}T000000-default'
  write(folder / 'scores.csv', scores)
  config = {'env': env, 'seed': number, 'logdir': str(folder), **config}
  files.write_yaml(str(folder / 'config.yaml'), config)


def test_seeds_of_a_file(tmp_path):
  path = write(tmp_path / 'pendulum.csv', [1, 2], seeds=(3, 4))
  runs = plot_scores.load_runs(path, 'eval', divide=50)
  assert [x.label for x in runs] == ['pendulum', 'pendulum']
  for run in runs:
    steps, scores = run.curves['eval']
    assert (steps.tolist(), scores.tolist()) == ([0, 2], [1, 2])
  (run,) = plot_scores.load_runs(write(tmp_path / 'a.csv', [1]), 'train', 'b')
  assert run.label == 'b' and run.curves['train'][1].tolist() == [-1]


def test_folders(tmp_path):
  """Legends name configuration, task, and what else differs, but no paths."""
  for number, env in enumerate(['A-v0', 'A-v0', 'B-v0']):
    make_run(tmp_path, number, env)
  make_run(tmp_path / 'deeper', 3, 'A-v0', discount=0.9)
  groups = plot.group(plot_scores.load_runs(str(tmp_path), 'eval'))
  assert {k: len(v) for k, v in groups.items()} == {
    'default A-v0': 2,
    'default A-v0, discount 0.9': 1,
    'default B-v0': 1,
  }
  # Nothing else is averaged under a name that was given.
  groups = plot.group(plot_scores.load_runs(str(tmp_path), 'eval', 'ours'))
  assert {k: len(v) for k, v in groups.items()} == {
    'ours, env A-v0': 2,
    'ours, env A-v0, discount 0.9': 1,
    'ours, env B-v0': 1,
  }


def test_runs_named_twice(tmp_path, caplog):
  """They are one seed, also within a folder, and through a link."""
  for number in range(2):
    make_run(tmp_path, number, 'A-v0')
  run = tmp_path / '20261120T000000-default'
  (tmp_path / 'latest').symlink_to(run)
  given = [str(run), f'{tmp_path}/latest', str(tmp_path), f'{run}/scores.csv']
  groups = plot.group(plot_scores.load_runs(given, 'eval'))
  assert {k: len(v) for k, v in groups.items()} == {'default A-v0': 2}
  assert not caplog.messages, 'A file is none that cannot be searched.'
  assert len(plot_scores.load_runs(run, 'eval')) == 1
  drawn = []
  patch = pytest.MonkeyPatch()
  with patch.context() as context:
    context.setattr(plot, 'draw', lambda *args: drawn.append(args))
    context.setattr(plot, 'save', lambda *args: None)
    plot_scores.main([*given, f'a={run}', f'a={run}/', '--out=x.png'])
  ((_, curves, _),) = drawn
  assert {k: len(v) for k, v in curves.items()} == {'default A-v0': 2, 'a': 1}


def test_program(tmp_path, capsys):
  """More groups than colors of the past; another ending than .png."""
  out = tmp_path / 'curves.svg'
  sources = [
    f'g{i}={write(tmp_path / f"{i}.csv", [1, i, 3])}' for i in range(7)
  ]
  plot_scores.main([*sources, '--out', str(out), '--divide', '1000'])
  assert capsys.readouterr().out == f'Wrote {out}.\n'
  assert out.read_text().startswith('<?xml')


def test_bad_input(tmp_path):
  table = write(tmp_path / 'a.csv', [1])
  (tmp_path / 'b.csv').write_text('phase,step\neval,1\n')
  (tmp_path / 'empty').mkdir()
  write(tmp_path / 'damaged' / 'scores.csv', [1])
  (tmp_path / 'damaged' / 'config.yaml').write_text('')
  for path, phase, words in (
    (table, 'test', 'no scores of phase test'),
    (str(tmp_path / 'none.csv'), 'eval', 'no file or folder .*none.csv'),
    (str(tmp_path / 'empty'), 'eval', 'no scores of phase eval'),
    (str(tmp_path / 'b.csv'), 'eval', "b.csv: it has no 'global_step'. Use"),
    (str(tmp_path / 'damaged'), 'eval', 'Cannot read .*config.yaml'),
  ):
    with pytest.raises(errors.UsageError, match=words):
      plot_scores.load_runs(path, phase)
  assert plot_scores.run([table, '--out=x.png', '--divide=0']) == 2


def test_path_with_an_equals_sign(tmp_path):
  """An argument that exists is no label and path."""
  path = write(tmp_path / 'rate=0.1' / 'scores.csv', [1, 2])
  for source in (path, str(tmp_path / 'rate=0.1')):
    assert plot_scores.run([source, f'--out={tmp_path}/x.png']) == 0
