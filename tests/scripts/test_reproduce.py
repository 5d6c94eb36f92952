"""Results that are made again: training, table, figures, shipped agents."""

import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from agents.run import checkpoint, errors, files, mpi
from planet.scripts import parameters, renamed
from scripts import reproduce
from scripts.reproductions import (
  bars,
  collecting,
  curves,
  intervals,
  originals,
  shipping,
  tables,
  training,
)
from scripts.reproductions import entry as entry_lib
from scripts.reproductions.bars import Bar
from scripts.reproductions.training import Trial
from tests import golden

RESULTS = os.path.join(golden.ROOT, 'results')


def make_entry(**kwargs):
  """Entry of the pretended training."""
  values = dict(
    name='toy',
    system='ppo',
    meaning='a toy',
    flags='--seed={seed}',
    seeds=(0, 1),
    bar=Bar('reach', 195, steps=450),
    hours=3,
  )
  return entry_lib.Entry(**{**values, **kwargs})


@pytest.fixture
def toy(monkeypatch):
  """Only the pretended training."""
  program = 'tests.scripts.training_program', '--logdir={run}'
  monkeypatch.setitem(entry_lib.PROGRAMS, 'ppo', program)
  monkeypatch.setattr(training, '_POLL_SECONDS', 0.05)
  entry = make_entry()
  monkeypatch.setattr(tables, '_HIGHLIGHTS', 'toy')
  table = entry_lib.load()
  before = dict(table)
  table.clear()
  table['toy'] = entry
  yield entry
  table.clear()
  table.update(before)


def points(*values):
  return 100.0 * np.arange(1, len(values) + 1), np.array(values, float)


def test_all_results_are_listed(capsys):
  assert reproduce.run(['--list']) == 0
  lines = capsys.readouterr().out.splitlines()
  listed = [x.split()[0] for x in lines[1:-2] if not x.startswith(' ')]
  assert listed == [*entry_lib.load()]
  assert any('297 +- 39 at 100,000 steps' in x for x in lines)
  (row,) = (x.split() for x in lines if x.startswith('planet_cheetah_run_full'))
  assert row[4] == 'yes'


def test_from_another_folder(tmp_path):
  """As a file, whose trainings find the checkout as well."""
  path = os.path.join(golden.ROOT, 'scripts', 'reproduce.py')
  done = subprocess.run(
    [sys.executable, path, '--list'],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    env={x: y for x, y in os.environ.items() if x != 'PYTHONPATH'},
  )
  assert done.returncode == 0 and 'her_reach' in done.stdout, done.stderr
  find = 'import importlib.util as x; print(x.find_spec("scripts.main").origin)'
  done = subprocess.run(
    [sys.executable, '-c', find],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    env=training._environ(),
  )
  assert done.stdout.strip() == os.path.join(golden.ROOT, 'scripts/main.py')


def test_list_needs_no_tensorflow():
  code = (
    'import sys\nfrom scripts import reproduce\nreproduce.main(["--list"])\n'
    'assert "tensorflow" not in sys.modules'
  )
  subprocess.run([sys.executable, '-c', code], check=True, cwd=golden.ROOT)


@pytest.mark.parametrize(
  'argv, words',
  [
    (['her_raech'], r"'her_raech' is unknown. .*her_reach"),
    ([], 'Give either the name'),
    (['her_reach', '--list'], 'Give either the name'),
    (['ppo_minitaur', '--check'], 'no shipped agent for ppo_minitaur'),
    (['--figure', '--check'], 'need the name of a result'),
    (['her_reach', '--episodes', '5'], 'Give either --check, with --episodes'),
    (['her_reach', '--check', '--original', '.'], 'Give either --check'),
    (['her_reach', '--check', '--seed=1'], 'only trainings have one'),
  ],
)
def test_bad_usage(argv, words, capsys):
  assert reproduce.run(argv) == 2
  assert re.search(words, capsys.readouterr().err)


@pytest.mark.parametrize(
  'bar, values, measured, reached',
  [
    (Bar('reach', 3, steps=200), (1, 3, 2), 200, True),
    (Bar('reach', 3, steps=200), (1, 2, 3), 300, False),
    (Bar('reach', 3), (1, 2), math.inf, None),
    (Bar('reach', 3, 2, 400), (3, 1, 3, 4), 400, True),
    (Bar('reach', 3, 2, 400), (3, 1, 3, 2), math.inf, False),
    (Bar('stay', 1, steps=200), (1, 0, 1, 1), 300, False),
    (Bar('stay', 1, steps=300), (1, 0, 1, 1), 300, True),
    (Bar('stay', 1, steps=300), (1, 1, 0), math.inf, False),
    (Bar('last_mean', 3.5, 2), (9, 3, 4), 3.5, True),
    (Bar('last_mean', 3.6, 2), (9, 3, 4), 3.5, False),
    (Bar('last_mean', count=2), (9, 3, 4), 3.5, None),
    (Bar('last_mean', count=2), (3,), 3, None),
    (Bar('played', 3), (3,), 3, True),
    (Bar('played', 4), (3,), 3, False),
    (Bar('gain'), (1, 0, 3), 2, None),
    (Bar('gain'), (3,), math.nan, None),
    (Bar('same'), (1, 2), 2, None),
  ],
)
def test_bars(bar, values, measured, reached):
  np.testing.assert_equal(bars.measure(bar, points(*values)), measured)
  assert bars.judge(bar, points(*values), None) is reached
  assert bars.describe(bar)


def test_bars_beside_a_reference():
  bar, ours = Bar('reach', 3, factor=2), points(0, 0, 0, 3)
  assert bars.judge(bar, ours, points(0, 3)) is True
  assert bars.judge(bar, ours, points(3, 0)) is False
  assert bars.judge(bar, ours, None) is None
  assert bars.judge(bar, points(0, 0), points(0, 0)) is None
  assert 'no later than' in bars.describe(Bar('reach', 3, factor=1))
  same = Bar('same')
  assert bars.judge(same, points(1, 2), points(1, 2, 3)) is True
  assert bars.judge(same, points(1, 2), points(1, 2.001, 3)) is False
  assert bars.judge(same, points(1, 2, 3), points(1, 2)) is False


def test_bar_of_the_trained_agent(tmp_path):
  """Its episodes count, not the curve."""
  entry = make_entry(bar=Bar('played', 3))
  sitting = dict.fromkeys(('processor', 'versions', 'commit'), '')
  sitting.update(wall_seconds=60, cpu_seconds=60)
  record = {'complete': True, 'sittings': [sitting], 'command': 'python'}
  played = {**record, 'evaluation': {'mean': 3.5, 'episodes': 40}}
  line = collecting.make_line(entry, played, points(9, 1), None)
  assert (line['steps'], line['measured'], line['reached']) == (200, 3.5, True)
  words = (
    '3.5, 3.5 (seeds 0, 1; 200 steps); trained agent in 40 episodes per seed'
  )
  assert tables.describe(entry, {0: line, 1: line}) == words
  line = collecting.make_line(entry, record, points(9, 1), None)
  assert (line['measured'], line['reached']) == (None, None)
  assert tables.describe(entry, {0: line}) == (
    'not measured (seed 0; 200 steps)'
  )
  assert tables.describe_state(entry, {0: line}) == '1 of 2 seeds complete'
  folder = tmp_path / entry.name
  folder.mkdir()
  (folder / tables.RUNS).write_text(json.dumps({'0': line}))
  curves.write(str(folder / curves.FILE), {'eval': {0: points(9, 1)}})
  collecting.judge_again(entry, str(tmp_path))
  assert tables.read_runs(str(folder)) == {0: line}


def test_from_training_to_table(toy, tmp_path, capfd):
  out, results = str(tmp_path / 'out'), str(tmp_path / 'results')
  assert reproduce.run(['toy', '--seed', '1', '--out', out]) == 0
  assert 'toy: 400 (seed 1; 600 steps)' in capfd.readouterr().out
  trial = Trial(toy, 1, out)
  record = trial.read()
  assert record['complete'] and len(record['sittings']) == 1
  program = 'python -m tests.scripts.training_program'
  assert record['command'] == f'{program} --seed=1 --logdir=RUN'
  # Again: nothing to do.
  assert reproduce.run(['toy', '--seed', '1', '--out', out]) == 0
  assert trial.read() == record
  os.makedirs(results)
  markers = '\n'.join(tables.MARKERS)
  for folder in (tmp_path, tmp_path / 'results'):
    (folder / 'README.md').write_text(markers)
  collect = ['--collect', '--out', out, '--results', results]
  assert reproduce.run(collect) == 0
  line = tables.read_runs(os.path.join(results, 'toy'))[1]
  assert line['measured'] == 400 and line['reached'] is True
  assert 'TensorFlow' in line['versions'] or 'tensorflow' in line['versions']
  found = curves.read(os.path.join(results, 'toy', 'curve.csv'))
  assert found[1][1].tolist() == [11, 51, 151, 197, 200, 201]
  table = (tmp_path / 'results' / 'README.md').read_text()
  assert '400 (1 seed): own threshold met (' in table
  assert '400 (seed 1; 600 steps)' in table and '1 of 2 seeds' in table
  assert os.path.exists(os.path.join(results, 'toy', 'curve.png'))
  # Seeds from elsewhere are added to those that are there.
  other = str(tmp_path / 'other')
  assert reproduce.run(['toy', '--out', other]) == 0
  assert reproduce.run([*collect[:2], other, *collect[3:]]) == 0
  assert sorted(tables.read_runs(os.path.join(results, 'toy'))) == [0, 1]
  table = (tmp_path / 'results' / 'README.md').read_text()
  assert '400 (2 of 2 seeds) (seeds 0, 1; 600 steps)' in table


def test_sessions_of_the_pipeline(tmp_path):
  """A session is continued once it has a checkpoint."""
  entry, run = entry_lib.find('pipeline_ddpg_pendulum'), str(tmp_path)
  command = ' '.join(entry.command(3, run))
  assert command.endswith(f'--session-path {run} --session-name session0')
  assert '{seed: 3, number_epochs: 20}' in command
  # One that was killed before is begun anew.
  (tmp_path / 'session0' / 'checkpoints').mkdir(parents=True)
  assert ' '.join(entry.command(3, run)) == command
  path = tmp_path / 'session0' / 'checkpoints' / 'checkpoint-1'
  with checkpoint.write_folder(str(path), mpi.SingleComm()):
    pass
  assert entry.command(3, run)[3:] == [
    '--load-checkpoint',
    str(tmp_path / 'session0'),
    '--resume',
  ]


def test_what_a_training_needs_is_made_once(toy, tmp_path, capfd):
  """It is there before the run has a folder."""
  code = "import sys; open(sys.argv[1], 'a').write('made')"
  entry = dataclasses.replace(
    toy,
    flags=f'{toy.flags} --fail=3 --needs={{parent}}/made.txt',
    before=f'python -c "{code}" {{parent}}/made.txt',
  )
  with pytest.raises(errors.Failure, match='ended with exit code 7'):
    training.train(Trial(entry, 0, str(tmp_path)))
  trial = Trial(entry, 0, str(tmp_path))
  training.train(trial)
  assert trial.read()['complete']
  with open(os.path.join(trial.folder, 'made.txt')) as file_:
    assert file_.read() == 'made'
  assert '--needs=./made.txt' in entry.command(0, 'RUN')


def test_what_a_training_needs_cannot_be_made(toy, tmp_path):
  before = 'python -c "raise SystemExit(7)" {parent}/made.txt'
  entry = dataclasses.replace(toy, before=before)
  trial = Trial(entry, 0, str(tmp_path))
  with pytest.raises(errors.Failure, match='ended with exit code 7'):
    training.train(trial)
  assert not os.path.exists(trial.run)


def test_file_of_demonstrations(tmp_path):
  """Where it is written is where it is read, in the folder of the seed."""
  entry, run = entry_lib.find('her_pick_demos'), str(tmp_path / 'run')
  path = str(tmp_path / 'demonstrations.npz')
  assert f'--demo_file={path}' in entry.command(0, run)
  assert entry_lib.fill(entry.before, 0, run)[-1] == path


def test_failure_is_no_result(toy, tmp_path, capfd):
  broken = dataclasses.replace(toy, flags=f'{toy.flags} --fail=3')
  trial = Trial(broken, 0, str(tmp_path))
  with pytest.raises(errors.Failure, match='ended with exit code 7'):
    training.train(trial)
  assert not trial.read()['complete']
  assert len(curves.read_run(toy, trial.run)[0]) == 3
  # It goes on when the cause is gone.
  training.train(trial)
  record = trial.read()
  assert record['complete'] and len(record['sittings']) == 2
  assert len(curves.read_run(toy, trial.run)[0]) == 6


def test_other_flags_are_another_training(toy, tmp_path):
  """Only runs of the entry's flags are continued and collected."""
  out, results = str(tmp_path / 'out'), str(tmp_path)
  other = dataclasses.replace(toy, flags=f'{toy.flags} --seconds=0.01')
  trial = Trial(toy, 0, out)
  training.train(dataclasses.replace(trial, entry=other))
  assert trial.read()['complete']
  folder = str(tmp_path / 'toy')
  assert not collecting.summarize(toy, out, folder, results)
  known = collecting.summarize(other, out, folder, results)
  with pytest.raises(errors.UsageError, match='contains another training'):
    training.train(trial)
  assert len(trial.read()['sittings']) == 1
  # An incomplete run does not replace a complete one, even of other flags.
  trial.write({**trial.read(), 'command': trial.shown, 'complete': False})
  assert collecting.summarize(toy, out, folder, results) == known


def test_stop_as_soon_as_reached(toy, tmp_path):
  slow = f'{toy.flags} --seconds=1'
  entry = dataclasses.replace(toy, flags=slow, stop_early=True)
  began = time.monotonic()
  trial = Trial(entry, 0, str(tmp_path))
  training.train(trial)
  steps, values = curves.read_run(entry, trial.run)
  assert trial.read()['complete']
  assert 195 <= values.max() and len(steps) < 6
  assert time.monotonic() - began < 30


def test_cpu_seconds_of_ranks(toy, tmp_path):
  """They count although mpirun is interrupted before it has counted them."""
  flags = f'{toy.flags} --seconds=1 --busy=1'
  entry = dataclasses.replace(toy, flags=flags, ranks=2, stop_early=True)
  trial = Trial(entry, 0, str(tmp_path))
  training.train(trial)
  record = trial.read()
  assert record['command'].startswith('mpirun -n 2')
  assert 1 <= record['sittings'][0]['cpu_seconds'] <= 20


@pytest.mark.slow
def test_stop_and_continue(toy, tmp_path):
  """SIGTERM to the tool is one Ctrl-C to the training; the command goes on."""
  code = (
    'from scripts import reproduce\n'
    'from scripts.reproductions import training\n'
    'from scripts.reproductions import entry as entry_lib\n'
    'from tests.scripts import test_reproduce as tests\n'
    'import sys\n'
    "program = 'tests.scripts.training_program', '--logdir={run}'\n"
    "entry_lib.PROGRAMS['ppo'] = program\n"
    'training._POLL_SECONDS = 0.05\n'
    "flags = '--seed={seed} --seconds=2 --slow-stop=1'\n"
    "entry_lib.load()['toy'] = tests.make_entry(flags=flags)\n"
    f"sys.exit(reproduce.run(['toy', '--out', {str(tmp_path)!r}]))\n"
  )
  process = subprocess.Popen([sys.executable, '-c', code], cwd=golden.ROOT)
  trial = Trial(toy, 0, str(tmp_path))
  while not len(curves.read_run(toy, trial.run)[0]):
    assert process.poll() is None
    time.sleep(0.1)
  process.terminate()
  assert process.wait(30) == 0
  assert os.path.exists(os.path.join(trial.run, 'stopped-1-times'))
  record = trial.read()
  assert not record['complete'] and record['sittings'][0]['wall_seconds'] >= 0
  assert 1 <= len(curves.read_run(toy, trial.run)[0]) < 6
  flags = '--seed={seed} --seconds=2 --slow-stop=1'
  training.train(dataclasses.replace(trial, entry=make_entry(flags=flags)))
  assert trial.read()['complete']


@pytest.fixture(scope='module')
def rows():
  """All rows of the table by name; each resamples many curves."""
  return {
    x.name: tables.make_row(x, RESULTS) for x in entry_lib.load().values()
  }


def test_tables_are_the_shipped_ones(tmp_path, rows):
  """All pages belong to the lines beside the results."""
  for name in ('results', 'docs'):
    shutil.copytree(os.path.join(golden.ROOT, name), tmp_path / name)
  shutil.copy(os.path.join(golden.ROOT, 'README.md'), tmp_path)
  tables.write(str(tmp_path / 'results'))
  for path in tables.list_pages(RESULTS):
    written = tmp_path / os.path.relpath(path, golden.ROOT)
    assert written.read_text() == open(path).read(), path
  row = rows['planet_cheetah_run_full']
  assert row['ours'].startswith('-: not run, about 24 h on a GPU')
  # Half of the first evaluations in results/reference.
  original = 'published, or original code today'
  words = 'original code: 144,000 (20 of 20 seeds)'
  assert rows['ppo_pendulum'][original] == words
  # Gains of fewer steps than ours.
  found = rows['ppo_minitaur'][original]
  assert found.endswith('(1 seed, 840,000 steps)')
  # Compared with a row of ours.
  row = rows['her_pick_demos']
  assert 'her_pick: 340,000' in row['ours'] and row[original] == '-'
  assert all(len(x) == 5 for x in rows.values())


def test_nothing_is_reproduced_without_its_rule(rows):
  """Nor by a comparison with fewer than three curves of the original."""
  for name, entry in entry_lib.load().items():
    row = rows[name]
    rule = re.escape(bars.describe(entry.bar))
    said = re.findall(r'\breproduced\b.*', row['ours'].split('<details>')[0])
    for words in said:
      assert re.search(rf'\({rule}', words), entry.name
      known = len(curves.read_reference(entry, RESULTS))
      assert known >= 3 or not entry.reference, entry.name
  for path in tables.list_pages(RESULTS):
    for line in open(path).read().splitlines():
      if line.startswith('| [') and 'reproduced' in line:
        assert re.search(r'reproduced( by [\w ]+)? \(', line), (path, line)


def test_verdicts_are_those_of_the_curves(tmp_path):
  """Also where the curve of the original has changed since."""
  results = tmp_path / 'results'
  shutil.copytree(RESULTS, results)
  for entry in entry_lib.load().values():
    before = tables.read_runs(str(results / entry.name))
    collecting.judge_again(entry, str(results))
    assert tables.read_runs(str(results / entry.name)) == before, entry.name
  reference = results / 'reference' / 'ppo_pendulum_curve.csv'
  reference.write_text('seed,global_step,phase,mean_score\n0,100,eval,200\n')
  entry = entry_lib.find('ppo_pendulum')
  collecting.judge_again(entry, str(results))
  runs = tables.read_runs(str(results / entry.name))
  assert [runs[seed]['reached'] for seed in (0, 1)] == [False, None]


def test_numbers_of_results_are_generated():
  """README and docs state returns and scores between markers only."""
  stated = r'(returns?|scores?|success rates?) (of|is|are|to|after) (about )?-?'
  limit = 'return of 500 is the highest possible'
  for path in tables.list_pages(RESULTS):
    if path.startswith(RESULTS):
      continue
    text = ' '.join(open(path).read().split()).replace(limit, '')
    text = re.sub('<!-- [^/].*?<!-- /.*?-->', '', text)
    assert not re.search(stated + r'\d', text, re.IGNORECASE), path


def test_other_numbers_of_the_readme():
  """None is a result, but for those of random actions and of the clock."""
  with open(os.path.join(golden.ROOT, 'README.md')) as file_:
    text = file_.read()
  first, last = tables.MARKERS
  links, code = r'\]\([^)]*\)', '```.*?```'
  generated = f'{first}.*{last}|<!-- [^/].*?<!-- /.*?-->'
  steps = r'\d+,000'
  text = re.sub(
    f'{generated}|{links}|{code}|{steps}', '', text, flags=re.DOTALL
  )
  known = '1 1.4 15 2.0 2017 2019 274 3 3.10 3.13 30 4 512 684'
  assert set(re.findall(r'\d+(?:\.\d+)?', text)) == set(known.split())


def test_numbers_by_the_clock():
  """Minutes and returns of the timed run are those of its recorded tests."""
  path = os.path.join(golden.ROOT, 'results', 'planet', 'hour.csv')
  minutes, steps, returns = np.loadtxt(path, delimiter=',', skiprows=1).T
  latest = {
    step: (round(minutes[i]), round(returns[max(0, i - 2) : i + 1].mean()))
    for i, step in enumerate(steps)
  }
  with open(os.path.join(golden.ROOT, 'results', 'planet', 'cpu.md')) as file_:
    rows = re.findall(r'^\| (\d+),000 \| (\d+) \| (\d+) \|', file_.read(), re.M)
  assert len(rows) == 6
  for step, *shown in rows:
    assert tuple(map(int, shown)) == latest[1000 * int(step)]
  with open(os.path.join(golden.ROOT, 'README.md')) as file_:
    (shown,) = re.findall(r'tests returned\s+(\d+)', file_.read())
  assert int(shown) == latest[steps[-1]][1]


def test_seed_of_both_on_fetch_push():
  """What docs/originals.md says of her_push."""
  entry = entry_lib.find('her_push')
  theirs = curves.read_reference(entry, RESULTS)[0]
  path = os.path.join(RESULTS, entry.name, curves.FILE)
  ours = curves.read(path)[0]
  pairs = zip(*theirs, *ours, strict=False)
  differ = [step for step, x, _, y in pairs if not np.isclose(x, y)]
  assert differ[0] == 80000


def test_first_evaluations_of_both_on_the_pendulum():
  """What results/ppo/README.md says of ppo_pendulum."""
  entry = entry_lib.find('ppo_pendulum')
  ours = curves.read(os.path.join(RESULTS, entry.name, curves.FILE))
  pairs = [
    (theirs[1][0], ours[seed][1][0])
    for seed, theirs in curves.read_reference(entry, RESULTS).items()
  ]
  assert len(pairs) == 20
  assert sum(np.isclose(x, y, rtol=2e-6) for x, y in pairs) == 17


def test_numbers_in_sentences(toy, tmp_path):
  """Of a row, and of its seeds' last evaluations at a step."""
  folder = tmp_path / 'results' / 'toy'
  run = {'measured': None, 'steps': 500, 'cpu_hours': 1, 'complete': True}
  folder.mkdir(parents=True)
  runs = {i: {**run, 'measured': 100 * i, 'reached': None} for i in (1, 2)}
  (folder / tables.RUNS).write_text(json.dumps(runs))
  found = {1: points(9, 2, 4, 6, 0), 2: points(0, 8, 8, 8)}
  curves.write(str(folder / curves.FILE), {'eval': found})
  page = tmp_path / 'README.md'
  text = '{}<!-- toy at 400 -->{}<!-- / -->, <!-- toy -->{}<!-- / -->'
  page.write_text(text.format('', '', 'old\n'))
  tables.write(str(tmp_path / 'results'))
  assert page.read_text() == text.format('', 6, '100 (2 of 2 seeds)')


def test_shipped_agents_keep_their_values():
  """Presets of later versions do not change how PlaNet's are played."""
  for name in ('planet_cartpole_balance', 'planet_cartpole_swingup'):
    path = os.path.join(RESULTS, 'agents', name, 'config.yaml')
    values = files.read_yaml(path)['values']
    known = {*parameters.Parameters.names(), *renamed.NAMES}
    assert set(values) <= known
    # Those of later versions change nothing by default.
    later = set(parameters.Parameters.names()) - {'env'} - set(values)
    assert not any(parameters.Parameters().model_dump()[x] for x in later)
    assert values['planner_amount'] == 300 and values['train_steps'] == 3840


def test_every_shipped_agent_has_a_reason():
  """It is that of the first seed, or the table says why not."""
  for entry in entry_lib.load().values():
    if entry.check and entry.check.seed != entry.seeds[0]:
      words = f'seed {entry.check.seed} is shipped, as {entry.check.reason}'
      assert entry.check.reason
      assert words in tables.make_row(entry, RESULTS)['ours']


def test_every_threshold_has_a_reason():
  for entry in entry_lib.load().values():
    own = 'own threshold' in tables.make_row(entry, RESULTS)['ours']
    assert entry.reason or not own, entry.name


def test_table_between_markers():
  """It replaces what was there, and nothing else."""
  first, last = tables.MARKERS
  rows = [{'a': 'x', 'b': 'y'}]
  text = tables.insert(f'# Title\n{first}\nold\n{last}\nend\n', rows)
  table = '| a | b |\n| --- | --- |\n| x | y |'
  assert text == f'# Title\n{first}\n\n{table}\n\n{last}\nend\n'
  assert tables.insert(text, rows) == text
  assert tables.insert('none', rows) == 'none'


@pytest.mark.parametrize(
  'references, reached, words',
  [
    (3, [True, True], 'reproduced ('),
    (3, [True, False], 'reproduced by 1 of 2 seeds ('),
    (3, [False], 'not reproduced ('),
    (1, [True], 'agrees with 1 seed of the original ('),
    (0, [True], 'own threshold met ('),
    (0, [False], 'own threshold missed ('),
    (0, [None], 'no threshold'),
    (0, [], 'not complete'),
  ],
)
def test_verdicts(references, reached, words, tmp_path):
  """Only what the original has reached is reproduced."""
  seeds = range(len(reached))
  entry = make_entry(reproduces=references > 0, seeds=seeds, reference='x.csv')
  (tmp_path / 'reference').mkdir()
  lines = [f'{x},100,eval,200' for x in range(references)]
  text = '\n'.join(['seed,global_step,phase,mean_score', *lines])
  (tmp_path / 'reference' / 'x.csv').write_text(text)
  line = {'complete': True, 'measured': 3, 'steps': 100, 'cpu_hours': 1}
  (tmp_path / entry.name).mkdir()
  runs = {str(i): {**line, 'reached': x} for i, x in enumerate(reached)}
  if not runs:
    # One that meets the bar so far.
    runs['0'] = {**line, 'reached': True, 'complete': False}
  (tmp_path / entry.name / tables.RUNS).write_text(json.dumps(runs))
  cell = tables.make_row(entry, str(tmp_path), detailed=False)['ours']
  assert cell.partition(': ')[2].startswith(words)


def test_cost_of_what_is_under_way():
  entry, line = make_entry(), {'cpu_hours': 1.5, 'complete': False}
  whole = 'about 3 h on 1 core'
  text = tables.show_cost(entry, {0: line})
  assert text == f'1.5 CPU h so far, {whole} in all'
  assert tables.show_cost(entry, {0: {**line, 'complete': True}}) == '1.5 CPU h'
  assert tables.show_cost(entry, {}) == whole


def test_agents_are_small():
  total = sum(
    os.path.getsize(os.path.join(place, x))
    for place, _, names in os.walk(os.path.join(RESULTS, shipping.AGENTS))
    for x in names
  )
  assert total <= 25e6


def test_a_new_agent_replaces_the_shipped_one(toy, tmp_path, monkeypatch):
  """Nothing of the agent that was shipped before stays beside it."""
  entry = dataclasses.replace(toy, check=entry_lib.Check(1, 5, 0.1))
  monkeypatch.setitem(entry_lib.load(), 'toy', entry)
  out, results = tmp_path / 'out', tmp_path / 'results'
  training.train(Trial(entry, 1, str(out)))
  (out / 'toy' / 'seed1' / 'agent').mkdir()
  (out / 'toy' / 'seed1' / 'agent' / 'model-200').touch()
  shipped = results / shipping.AGENTS / 'toy'
  shipped.mkdir(parents=True)
  (shipped / 'model-100').touch()
  collecting.collect(str(out), str(results))
  assert os.listdir(shipped) == ['model-200']


@pytest.mark.needs('gymnasium_robotics')
def test_shipped_agent(tmp_path, capsys):
  """The agent plays as shipped; one that should be better is not."""
  check = ['her_reach', '--check', '--episodes=5']
  assert reproduce.run(check) == 0
  assert 'inside' in capsys.readouterr().out
  agents = tmp_path / shipping.AGENTS
  shutil.copytree(
    os.path.join(RESULTS, shipping.AGENTS, 'her_reach'), agents / 'her_reach'
  )
  shipped = agents / 'her_reach' / shipping._SHIPPED
  shipped.write_text('{"mean": 2, "std": 0, "episodes": 50}')
  assert reproduce.run([*check, f'--results={tmp_path}']) == 1
  assert 'OUTSIDE' in capsys.readouterr().out


def test_figures(toy, tmp_path, capsys):
  """One per result that has a curve."""
  assert reproduce.run(['--figure', '--results', str(tmp_path)]) == 0
  assert not capsys.readouterr().out
  (tmp_path / 'toy').mkdir()
  curves.write(str(tmp_path / 'toy' / curves.FILE), {'eval': {0: points(1, 2)}})
  assert reproduce.run(['--figure', '--results', str(tmp_path)]) == 0
  assert os.path.getsize(tmp_path / 'toy' / 'curve.png') > 1000


@pytest.mark.slow
def test_original(tmp_path):
  """Its curve replaces that of the seed, whatever the other columns are."""
  module = pytest.importorskip('pybullet_envs')
  folder = os.path.dirname(os.path.dirname(module.__file__))
  entry = dataclasses.replace(
    entry_lib.find('ppo_pendulum'),
    flags='--config=pybullet_pendulum --seed={seed} --steps=6000',
  )
  path = tmp_path / 'reference' / entry.reference
  path.parent.mkdir()
  path.write_text(
    'seed,global_step,phase,mean_score,cpu_seconds\n'
    '0,9,eval,1,2\n1,9,eval,3,4\n'
  )
  originals.train(entry, folder, 0, str(tmp_path), str(tmp_path))
  assert path.read_text().splitlines()[1:] == [
    '0,6000,train,28.3297,',
    '0,12000,eval,60.4167,',
    '1,9,eval,3,4',
  ]


@pytest.mark.slow
def test_an_original_ends_with_the_program(tmp_path):
  """SIGTERM ends it; what it has reached so far is added."""
  module = pytest.importorskip('pybullet_envs')
  folder = os.path.dirname(os.path.dirname(module.__file__))
  command = [sys.executable, '-m', 'scripts.reproduce', 'ppo_pendulum']
  command += ['--original', folder, '--results', tmp_path, '--out', tmp_path]
  (tmp_path / 'reference').mkdir()
  process = subprocess.Popen(command, cwd=golden.ROOT)
  progress = tmp_path / 'ppo_pendulum' / 'original0' / 'progress.csv'
  while not progress.exists() or len(progress.read_text().split()) < 2:
    assert process.poll() is None
    time.sleep(0.1)
  (child,) = psutil.Process(process.pid).children()
  process.terminate()
  assert process.wait(30) == 0
  assert not child.is_running()
  path = tmp_path / 'reference' / 'ppo_pendulum_curve.csv'
  assert path.read_text().startswith('seed,global_step,phase,mean_score\n0,')


@pytest.mark.slow
def test_environments_of_an_original_end_with_it(tmp_path):
  """Those in processes of their own went on alone."""
  module = pytest.importorskip('pybullet_envs')
  folder = os.path.dirname(os.path.dirname(module.__file__))
  command = [sys.executable, '-m', 'scripts.reproduce', 'ppo_kuka']
  command += ['--original', folder, '--results', tmp_path, '--out', tmp_path]
  process = subprocess.Popen(command, cwd=golden.ROOT)
  started: list[psutil.Process] = []
  while len(started) < 10:
    assert process.poll() is None
    time.sleep(0.1)
    started = psutil.Process(process.pid).children(recursive=True)
  process.terminate()
  assert process.wait(30) == 0
  assert psutil.wait_procs(started, 10)[1] == []


def test_rows_without_an_original(tmp_path):
  entry = entry_lib.find('carla_loop')
  with pytest.raises(errors.UsageError, match='no original to train'):
    originals.train(entry, '', 0, str(tmp_path), str(tmp_path))


@pytest.mark.parametrize('path', ['nowhere', golden.ROOT])
def test_path_without_an_original(path, tmp_path):
  """This project is not the original, although it has a package `planet`."""
  entry = entry_lib.find('planet_small')
  with pytest.raises(
    errors.UsageError, match='no original.*google-research.planet.$'
  ):
    originals.train(entry, path, 0, str(tmp_path), str(tmp_path))


def test_longer_curves_of_originals_stay(tmp_path):
  entry = entry_lib.find('ppo_pendulum')
  folder = tmp_path / 'reference'
  folder.mkdir()
  head, row = 'global_step,phase,mean_score\n', '{},eval,1\n'
  before = f'seed,{head}1,{row.format(1)}1,{row.format(2)}'
  (folder / entry.reference).write_text(before)
  (tmp_path / 'progress.csv').write_text(head + row.format(1))
  originals._add(entry, '1', str(tmp_path), str(tmp_path))
  assert (folder / entry.reference).read_text() == before
  originals._add(entry, '0', str(tmp_path), str(tmp_path))
  assert (folder / entry.reference).read_text().count('eval') == 3


def test_steps_of_an_original_are_those_of_all_ranks(tmp_path):
  """HER logs episodes of 50 steps per rank; the entry has two ranks."""
  entry = entry_lib.find('her_push')
  (tmp_path / 'reference').mkdir()
  (tmp_path / 'progress.csv').write_text(
    'epoch,train/episode,test/success_rate,test/mean_Q\n0,100.0,0.1,-0.5\n'
  )
  originals._add(entry, '0', str(tmp_path), str(tmp_path))
  path = tmp_path / 'reference' / entry.reference
  assert path.read_text().splitlines()[1:] == ['0,0,10000,0.1,-0.5']


def test_interquartile_mean_and_its_interval():
  """The middle half, against the definition; the interval holds the truth."""
  rng = np.random.RandomState(0)
  assert intervals.interquartile_mean(np.array([0, 1, 3, 100])) == 2
  held = 0
  for _ in range(20):
    values = rng.normal(5, 2, 20)
    low, high = intervals.interval(lambda x: x.mean(-1), values)
    held += low <= 5 <= high
  assert 16 <= held <= 20


def test_times_with_censored_seeds():
  """Seeds that have not reached the level count while they were trained."""
  outcomes = [
    intervals.Outcome(*x)
    for x in ((10, 90), (np.inf, 20), (30, 90), (np.inf, 90))
  ]
  steps, shares = intervals.survival(outcomes)
  assert dict(zip(steps, shares))[10] == 0.25
  # One of the three that are left at step 30, after one of four.
  assert dict(zip(steps, shares))[30] == pytest.approx(1 - 0.75 / 2)
  assert intervals.median_time(outcomes) == 30
  assert intervals.median_time(outcomes[1:2]) == np.inf
  # Half of ten, although a product of fractions is less.
  numbers = (240, 480, 480, 780, 780, 840, 900, np.inf, np.inf, np.inf)
  outcomes = [intervals.Outcome(x, 1800) for x in numbers]
  assert intervals.median_time(outcomes) == 780


def test_probability_of_improvement():
  """Of pairs; ties are half, steps that a seed has not tried do not count."""
  make = lambda *numbers: [intervals.Outcome(x, 100) for x in numbers]
  share, (low, high) = intervals.improvement(make(1, 2), make(2, 3), False)
  assert share == 0.125 and low <= share <= high
  share, _ = intervals.improvement(make(1, 2), make(2, 3), True)
  assert share == 0.875
  longer = [intervals.Outcome(150, 200)]
  assert intervals.improvement(longer, make(np.inf), True)[0] == 0.5
  # Training may end where the level has been reached.
  stopped = [intervals.Outcome(50, 60)]
  assert intervals.improvement(longer, stopped, True)[0] == 0
  # A seed that ended early hides nothing of the others.
  ours = [*stopped, intervals.Outcome(np.inf, 10)]
  assert intervals.improvement(ours, make(80), True)[0] == 0.75
