"""Curves: how runs become lines and bands, and which belong together."""

import os

import numpy as np
import pytest
from matplotlib.axes import Axes

from agents.run import errors, plot

EPOCHS = np.arange(1.0, 5)


def band(*runs, trim=False, quartiles=False):
  """Abscissas, and lower end, middle and upper end of the values."""
  x, values = plot.align(runs, trim)
  return x.tolist(), plot.summarize(values, quartiles)


def test_runs_of_different_length():
  """They count as long as they last, or all are cut to the shortest."""
  runs = (EPOCHS[:3], np.array([0.0, 1, 2])), (EPOCHS[:2], np.array([4.0, 5]))
  x, (low, middle, high) = band(*runs, quartiles=True)
  assert x == [1, 2, 3]
  assert (low.tolist(), middle.tolist()) == ([1, 2, 2], [2, 3, 2])
  assert high.tolist() == [3, 4, 2]
  x, (low, middle, high) = band(*runs)
  assert middle.tolist() == [2, 3, 2]
  np.testing.assert_allclose(high - middle, [np.sqrt(8), np.sqrt(8), 0])
  x, (_, middle, _) = band(*runs, trim=True)
  assert x == [1, 2] and middle.tolist() == [2, 3]
  assert band(runs[0])[1].tolist() == [[0, 1, 2]] * 3


def test_runs_over_different_abscissas():
  """Interpolated, over what all of them cover or over everything."""
  clock = np.array([2.0, 3.0, 4.5, 6.0])
  runs = (EPOCHS, EPOCHS), (clock, clock)
  for trim, ends in ((True, (2, 4)), (False, (1, 6))):
    x, (low, middle, high) = band(*runs, trim=trim)
    assert (x[0], x[-1]) == ends
    np.testing.assert_allclose(middle, x)
    np.testing.assert_allclose(high - low, 0, atol=1e-12)
  assert band(runs[0], (clock + 9, clock), trim=True)[0] == []


def test_folders_that_do_not_exist(tmp_path):
  """A comparison must not be drawn without one of its sides."""
  (tmp_path / 'a').mkdir()
  (tmp_path / 'a' / 'scores.csv').touch()
  (tmp_path / 'moved').mkdir()
  (tmp_path / 'moved' / 'scores.csv').symlink_to(tmp_path / 'gone')
  assert plot.find_runs([str(tmp_path)], 'scores.csv') == [str(tmp_path / 'a')]
  with pytest.raises(errors.UsageError, match='no file or folder .*/b; check'):
    plot.find_runs([str(tmp_path / 'a'), str(tmp_path / 'b')], 'scores.csv')


def test_folders_given_twice(tmp_path, monkeypatch):
  """A run counts as one seed, also if a folder above it is named, too."""
  run, other = tmp_path / 'a', tmp_path / 'other' / 'b'
  for folder in (run, other):
    folder.mkdir(parents=True)
    (folder / 'scores.csv').touch()
  (tmp_path / 'latest').symlink_to(run)
  monkeypatch.chdir(tmp_path)
  given = [str(tmp_path), 'a/', './a', 'latest', 'other']
  found = plot.find_runs(given, 'scores.csv')
  assert {os.path.realpath(x) for x in found} == {str(run), str(other)}
  assert len(found) == 2


def test_links(tmp_path, caplog):
  """Runs that are elsewhere count, links in circles do not hinder."""
  run = tmp_path / 'scratch' / 'b'
  run.mkdir(parents=True)
  (run / 'scores.csv').touch()
  (run / 'above').symlink_to(tmp_path)
  logs = tmp_path / 'logs'
  logs.mkdir()
  (logs / 'b').symlink_to(run)
  (logs / 'again').symlink_to(logs)
  (found,) = plot.find_runs([str(logs)], 'scores.csv')
  assert os.path.realpath(found) == str(run)
  assert not caplog.messages


def test_folders_that_cannot_be_read(tmp_path, monkeypatch, caplog):
  """The figure would lack their runs without a word."""
  for name in ('a', 'b'):
    (tmp_path / name).mkdir()
    (tmp_path / name / 'scores.csv').touch()
  scandir = os.scandir

  def refuse(path):
    if path == str(tmp_path / 'b'):
      raise PermissionError(13, 'Permission denied', path)
    return scandir(path)

  monkeypatch.setattr(os, 'scandir', refuse)
  assert plot.find_runs([str(tmp_path)], 'scores.csv') == [str(tmp_path / 'a')]
  (told,) = caplog.messages
  assert told == (
    f'Left out {tmp_path}/b, which cannot be read: Permission denied.'
  )


def test_points():
  """Sorted; repetitions are averaged, and what is not finite is left out."""
  x, y = plot.make_points([3, 1, 3, 2, np.nan], [1, 5, 3, np.inf, 2])
  assert (x.tolist(), y.tolist()) == ([1, 3], [5, 2])


def test_smooth():
  """Averages over neighbors, as many as there are at the ends."""
  values = np.array([1.0, 2, 3, 4, 10])
  assert plot.smooth(values, 1).tolist() == [1, 2, 3, 4, 10]
  np.testing.assert_allclose(
    plot.smooth(values, 3), [1.5, 2, 3, 17 / 3, 7], rtol=1e-12
  )
  np.testing.assert_allclose(plot.smooth(values, 99), [4] * 5)


def test_groups():
  """Names have the settings that differ, and no others."""
  runs = [
    plot.Run('a', {}, {'model': 'rssm', 'rate': 1}),
    plot.Run('a', {}, {'model': 'rssm', 'rate': 2}),
    plot.Run('a', {}, {'model': 'rssm'}),
    plot.Run('a', {}, {'model': 'rssm', 'rate': 1.0}),
    plot.Run('b', {}, {'model': 'ssm', 'rate': 1}),
  ]
  groups = plot.group(runs)
  sizes = {name: len(members) for name, members in groups.items()}
  assert sizes == {'a, rate 1': 2, 'a, rate 2': 1, 'a': 1, 'b': 1}
  many = [plot.Run('a', {}, dict.fromkeys('uvwx', i)) for i in range(2)]
  many.append(plot.Run('a', {}, {**many[1].settings, 'x': 7}))
  assert list(plot.group(many)) == ['a, u 0, v 0, w 0', 'a, u 1, v 1, w 1'] + [
    'a, u 1, v 1, w 1, 3'
  ]


def test_long_settings(tmp_path, recwarn):
  """They leave room for the curves."""
  points = {'x': (EPOCHS, EPOCHS)}
  runs = [plot.Run('a', points, {'b': [i] * 300}) for i in range(2)]
  groups = plot.group(runs)
  assert [len(x) for x in groups] == [36, 36]
  plot.draw_all(groups, ['x'], str(tmp_path), plot.Style())
  assert not [x for x in recwarn if 'collapsed' in str(x.message)]


def test_lines(monkeypatch, tmp_path):
  """One per group, with marks if it is short; many runs have a band."""
  lines, bands = [], []
  draw, fill = Axes.plot, Axes.fill_between
  monkeypatch.setattr(
    Axes, 'plot', lambda *args, **kw: [lines.append(kw), draw(*args, **kw)][1]
  )
  monkeypatch.setattr(
    Axes,
    'fill_between',
    lambda *args, **kw: [bands.append(args), fill(*args, **kw)][1],
  )
  long = np.arange(100.0)
  groups = {
    f'run {i}': [plot.Run('', {'x/y': (long, long)})] for i in range(11)
  }
  groups['few'] = [plot.Run('', {'x/y': (EPOCHS, EPOCHS)})] * 2
  groups['many'] = groups['few'] * 3
  groups['other'] = [plot.Run('', {'z': (EPOCHS, EPOCHS)})]
  out = str(tmp_path / 'a{b}')
  paths = plot.draw_all(groups, ['x/y'], out, plot.Style(), 'fig_')
  assert paths == [f'{out}/fig_x_y.png']
  thin = [x for x in lines if 'label' not in x]
  assert len(thin) == 2 and all(x['linewidth'] < 1 for x in thin)
  lines = [x for x in lines if 'label' in x]
  assert [x['label'] for x in lines] == [
    *[f'run {i}' for i in range(11)],
    'few (mean; thin: 2 runs)',
    'many (mean and deviation of 6 runs)',
  ]
  assert [x['marker'] for x in lines] == [None] * 11 + ['.'] * 2
  # There are ten colors.
  assert lines[0]['linestyle'] != lines[10]['linestyle']
  assert len(bands) == 1


def test_legend_covers_no_lines():
  figure = plot.draw('', {'a': [(EPOCHS, EPOCHS)]}, plot.Style())
  (axes,) = figure.axes
  figure.canvas.draw()
  top = axes.get_legend().get_window_extent().y1
  assert top < axes.get_window_extent().y0


def test_bad_input(tmp_path):
  with pytest.raises(errors.UsageError, match='--window is 0'):
    plot.Style(window=0)
  figure, _ = plot.make_figure((3, 2))
  (tmp_path / 'file').touch()
  for path, words in (
    (f'{tmp_path}/file/a.png', 'Choose another'),
    (f'{tmp_path}/a.txt', r'use \.png'),
    ('gs://bucket/a.png', 'gs://'),
  ):
    with pytest.raises(errors.UsageError, match=words):
      plot.save(figure, path)
  assert [x.name for x in tmp_path.iterdir()] == ['file']
