"""Figures of results: what is drawn beside the curve."""

import dataclasses
import os

import numpy as np
import pytest

from agents.run import log, plot
from scripts.reproductions import collecting, curves, figures, tables
from scripts.reproductions import entry as entry_lib
from scripts.reproductions.training import Trial

LABELED = [x for x in entry_lib.load().values() if x.levels]


def test_published_values_are_drawn(tmp_path, monkeypatch):
  """Each has a marker at its step, if that is on the axis."""
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  entry = entry_lib.load()['planet_default']
  steps = np.array([11000.0, 121000.0])
  points = steps, np.array([30, 90])
  curves.write(str(tmp_path / curves.FILE), {'eval': {0: points}})
  figures.draw_entry(entry, str(tmp_path), str(tmp_path))
  (axes,) = saved[0].axes
  lines = {x.get_label(): x for x in axes.get_lines()}
  assert list(lines) == [
    'ours',
    'published at 100k steps: 297',
    'published at 500k steps: 475',
    'published at 1M steps: 821',
  ]
  published = list(lines.values())[1:]
  shown = [np.transpose(x.get_data()).tolist() for x in published]
  assert shown == [[[100000, 297]], [], []]
  assert len({x.get_marker() for x in published}) == 3
  assert axes.get_xlim()[1] < 130000 and 297 < axes.get_ylim()[1] < 475


def test_collected_episodes_are_drawn(tmp_path, monkeypatch):
  """They are those of the run, at their own steps, and no test is one.

  Returns are those of the environment, not of the scaled rewards.
  """
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  entry = entry_lib.load()['planet_default']
  entry, out = dataclasses.replace(entry, reward_scale=0.5), str(tmp_path)
  trial = Trial(entry, 0, out)
  run = trial.run
  assert not len(curves.read_run(entry, run, curves.COLLECTED)[0])
  writer = log.MetricsWriter(os.path.join(run, '00001'))
  tag = 'graph/collection/should_collect_{0}_main/{0}_main/return'
  writer.write('train', 0, 50, {tag.format('train'): 40.0}, 6000)
  writer.write('train', 50, 100, {tag.format('train'): 60.0}, 7000)
  writer.write('test', 0, 150, {tag.format('test'): 90.0}, 7000)
  epoch = {'train_return': 50.0, 'test_return': 90.0}
  writer.write('epoch', 1, 150, epoch, 7000)
  writer.close()
  with open(os.path.join(run, '00001', 'config.yaml'), 'w') as file_:
    file_.write('{config: default, params: {}, values: {tasks: [[main]]}}')
  sitting = dict.fromkeys(('processor', 'versions', 'commit'), '')
  sitting.update(wall_seconds=60, cpu_seconds=60)
  record = {'complete': False, 'sittings': [sitting], 'command': trial.shown}
  trial.write(record)
  folder = str(tmp_path / 'results')
  os.makedirs(folder)
  assert collecting.summarize(entry, out, folder, folder)
  lines = {x.get_label(): x for x in saved[0].axes[0].get_lines()}
  collected = lines['ours, collected with noise'].get_data()
  np.testing.assert_array_equal(collected, [[6000, 7000], [80, 120]])
  np.testing.assert_array_equal(lines['ours'].get_data(), [[7000], [180]])
  # The table is about tests.
  assert tables.read_runs(folder)[0]['measured'] == 180


def test_lines_end_where_a_seed_ends(tmp_path, monkeypatch):
  """Beyond, a median would be of other seeds."""
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  entry = entry_lib.load()['pipeline_her_reach']
  steps, values = np.arange(1.0, 9), np.arange(0.0, 0.8, 0.1)
  ours = {0: (steps, values), 1: (steps[:3], values[:3])}
  curves.write(str(tmp_path / curves.FILE), {'eval': ours})
  theirs = {0: (steps, values), 2: (steps, 1 - values)}
  (tmp_path / entry.reference).mkdir()
  path = tmp_path / entry.reference / curves.FILE
  curves.write(str(path), {'eval': theirs})
  figures.draw_entry(entry, str(tmp_path), str(tmp_path))
  lines = {x.get_label(): x for x in saved[0].axes[0].get_lines()}
  assert len(lines['ours (median; thin: 2 runs)'].get_xdata()) == 3
  # What is to be the same is drawn for the same seeds.
  np.testing.assert_allclose(lines[entry.reference].get_ydata(), values)


@pytest.mark.parametrize('entry', LABELED, ids=lambda x: x.name)
def test_values_are_those_of_the_table(entry):
  """What is drawn is what the column `published` says."""
  assert all(f'{x:g}' in entry.published for x in entry.levels.values())


def test_panels(monkeypatch):
  """One per kind of result."""
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  figures.draw(entry_lib.RESULTS)
  axes = saved[-3].axes
  assert len(axes) == 4
  labels = [x.get_label() for x in axes[1].get_lines()]
  assert any('original code' in x for x in labels)
  # The tasks of PlaNet's paper and the configurations of PPO, run or not.
  assert len(saved[-1].axes) == 6
  assert len(saved[-2].axes) == 10


def test_grid(tmp_path, monkeypatch):
  """Panels compare both codes if there are enough seeds of each."""
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  steps = np.arange(1.0, 21)
  found = {seed: (steps, seed + 1000 * (steps > 9)) for seed in range(3)}
  better, few = map(entry_lib.find, ('ppo_racecar', 'ppo_ant'))
  (tmp_path / 'reference').mkdir()
  for entry, seeds in ((better, 3), (few, 2)):
    curves.write(
      str(tmp_path / 'reference' / entry.reference),
      {'eval': {k: (x, 0 * y) for k, (x, y) in found.items() if k < seeds}},
    )
    (tmp_path / entry.name).mkdir()
    curves.write(str(tmp_path / entry.name / curves.FILE), {'eval': found})
  names = 'ppo_racecar', 'ppo_ant', 'ppo_kuka'
  figures._draw_grid('', str(tmp_path), names, (1, 3))
  assert [x.get_title() for x in saved[0].axes] == [
    'RacecarBulletEnv-v0\nP(better) = 1.00 [1.00, 1.00]',
    'AntBulletEnv-v0',
    'KukaBulletEnv-v0 (not run yet)',
  ]
  assert [len(x.get_lines()) > 0 for x in saved[0].axes] == [True, True, False]
