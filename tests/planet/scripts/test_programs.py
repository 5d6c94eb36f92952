"""Programs beside training: events, videos, mirrored sources."""

import errno
import itertools
import os
import struct
import zlib

import numpy as np
from PIL import Image

from agents.envs import video
from agents.run import log
from planet.scripts import create_video, fetch_events, sync


def write_events(folder, tags):
  from agents.tools.tf1 import tf

  writer = tf.summary.FileWriter(str(folder))
  for step in range(3):
    for tag in tags:
      value = tf.Summary.Value(tag=tag, simple_value=10.0 * step)
      writer.add_summary(tf.Summary(value=[value]), step)
  writer.close()


def test_fetch_events(tmp_path, capsys):
  """One CSV file per folder and tag; a second call skips the folder."""
  for name in ('a', 'b'):
    write_events(tmp_path / name / 'test', ['trainer/x/score', 'other'])
  args = ['--logdirs', str(tmp_path / '*' / 'test')]
  args += ['--outdir', str(tmp_path / 'out')]
  assert fetch_events.run(args) == 0
  names = sorted(os.listdir(tmp_path / 'out'))
  assert [x.split('___')[1] for x in names] == ['trainer_x_score.csv'] * 2
  lines = (tmp_path / 'out' / names[0]).read_text().splitlines()
  assert lines[0] == 'wall_time,step,value'
  assert [x.split(',')[1:] for x in lines[1:]] == [
    ['0', '0.0'],
    ['1', '10.0'],
    ['2', '20.0'],
  ]
  capsys.readouterr()
  assert fetch_events.run(args) == 0
  assert capsys.readouterr().out.count('skipped') == 2
  # Of the original and earlier versions, by the names of today and back.
  for tags in ('return/*', 'trainer*score', 'return/test'):
    found = fetch_events.read_scalars(str(tmp_path / 'a' / 'test'), tags)
    assert list(found) == ['trainer/x/score']
  write_events(tmp_path / 'scalars', ['return/test', 'loss/image'])
  found = fetch_events.read_scalars(str(tmp_path / 'scalars'), 'trainer*score')
  assert list(found) == ['return/test']
  assert fetch_events.run(args + ['--force', 'True', '--tags', 'oth*']) == 0
  assert len(os.listdir(tmp_path / 'out')) == 4
  capsys.readouterr()
  assert fetch_events.run([*args, '--force=True', '--tags', 'retrun/*']) == 2
  assert "matches --tags 'retrun/*'" in capsys.readouterr().err
  write_events(tmp_path / 'a_' / 'test', ['other'])
  write_events(tmp_path / 'a-' / 'test', ['other'])
  assert fetch_events.run(args) == 2
  assert 'would have the same names' in capsys.readouterr().err
  assert (
    fetch_events.run(['--logdirs', '/no-such-folder*', '--outdir', 'x']) == 2
  )
  assert fetch_events.run(args + ['--force', 'yes']) == 2
  assert "--force: invalid choice: 'yes'" in capsys.readouterr().err


def test_export_that_failed(tmp_path, monkeypatch, capsys):
  """It leaves no files, so that the next call does not skip the folder."""
  write_events(tmp_path / 'scalars', ['a', 'b', 'c'])
  args = ['--logdirs', str(tmp_path / 'scalars'), '--tags', '*']
  args += ['--outdir', str(tmp_path / 'out')]
  write, counts = log.write_table, itertools.count()

  def fail(*given):
    if next(counts) == 2:
      raise OSError(errno.ENOSPC, 'No space left on device')
    write(*given)

  monkeypatch.setattr(log, 'write_table', fail)
  assert fetch_events.run(args) == 1
  assert os.listdir(tmp_path / 'out') == []
  assert fetch_events.run(args) == 0
  assert len(os.listdir(tmp_path / 'out')) == 3
  assert capsys.readouterr().out.endswith('scalars: 3\n')


def test_strips_with_gaps(tmp_path):
  """White between the frames is no part of them; black is."""
  strip = np.random.RandomState(0).randint(0, 255, (16, 30, 3), np.uint8)
  frames = create_video.split_strip(strip, 6, 8)
  gap = 2
  wide = np.full((16 + gap, 30 + 4 * gap, 3), 255, np.uint8)
  for row in range(2):
    for column in range(5):
      tile = strip[8 * row :, 6 * column :][:8, :6]
      wide[(8 + gap) * row :, (6 + gap) * column :][:8, :6] = tile
  np.testing.assert_array_equal(create_video.split_strip(wide, 6, 8), frames)
  # These sizes fit with gaps and without.
  zeros = np.zeros((8, 6 * 13 + 2 * 12 - 0, 3), np.uint8)
  assert create_video.split_strip(zeros, 6, 8).shape[0] == 17


def test_create_video(tmp_path, capsys):
  """Strips of two sequences and five steps become five frames."""
  strip = np.random.RandomState(0).randint(0, 255, (16, 30, 3), np.uint8)
  frames = create_video.split_strip(strip, 6, 8)
  assert frames.shape == (5, 8, 12, 3)
  np.testing.assert_array_equal(frames[1, :, 6:], strip[8:, 6:12])
  video.write_png(str(tmp_path / 'strip.png'), strip)
  args = ['-i', str(tmp_path / 'strip.png'), '-x', '6', '-y', '8']
  output = str(tmp_path / 'out.gif')
  assert create_video.run(args + ['-o', output]) == 0
  with Image.open(output) as image:
    assert image.n_frames == 5 and image.size == (12, 8)
  before = os.stat(output).st_mtime_ns
  capsys.readouterr()
  assert create_video.run(args + ['-o', output, '-d', '100']) == 0
  assert f'Skipping {output}, which exists' in capsys.readouterr().out
  assert os.stat(output).st_mtime_ns == before
  assert create_video.run(args + ['-o', output, '-f', '-d', '100']) == 0
  with Image.open(output) as image:
    assert image.size == (24, 16)
  args = ['--image-path', args[1], '--animation-path', output]
  args += ['--tile-width', '6', '--tile-height', '8', '--overwrite']
  assert create_video.run(args) == 0, 'flags of the original'
  with Image.open(output) as image:
    assert image.size == (12, 8)
  assert create_video.run(args[:2] + ['-o', output, '-f', '-x', '7']) == 2
  assert create_video.run(args + ['-o', output, '-f', '-r', '0']) == 2


def test_damaged_strip(tmp_path, capsys):
  """A sentence, whichever error it is for Pillow."""
  path = str(tmp_path / 'strip.png')
  noise = np.random.RandomState(0).randint(0, 255, (64, 640, 3), np.uint8)
  video.write_png(path, noise)
  with open(path, 'rb') as file_:
    good = file_.read()
  second = good.rindex(b'IDAT')
  size = struct.pack('>II', 60000, 60000)
  for bad in (
    good[: len(good) // 2],
    good[:second] + bytes(4) + good[second + 4 :],
    png_with_size(good, size),
  ):
    with open(path, 'wb') as file_:
      file_.write(bad)
    output = str(tmp_path / 'out.gif')
    assert create_video.run(['-i', path, '-o', output]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f'Error: Cannot read the image {path}: ')
    assert error.count('\n') == 1 and not os.path.exists(output)


def png_with_size(good, size):
  """The bytes of a picture whose header tells another width and height."""
  head = good[12:16] + size + good[24:29]
  return good[:12] + head + struct.pack('>I', zlib.crc32(head)) + good[33:]


def write_files(folder, *names, text='x = 1\n'):
  for name in names:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_sync(tmp_path):
  """Headers follow the first file of the target."""
  source, target = tmp_path / 'source', tmp_path / 'target'
  write_files(source, 'a.py', 'sub/b.py', text='# License\n\nx = 1\n')
  write_files(target, 'a.py', 'z.py', text='x = 0\n')
  args = ['--source', str(source), '--target', str(target)]
  assert sync.run(args) == 0
  assert (target / 'a.py').read_text() == 'x = 1\n'
  assert (target / 'sub' / 'b.py').read_text() == 'x = 1\n'
  (target / 'a.py').write_text('# Other\n\nx = 0\n')
  assert sync.run(args) == 0
  assert (target / 'sub' / 'b.py').read_text() == '# Other\n\nx = 1\n'


def test_sync_of_unusual_files(tmp_path, capsys):
  """Bytes are kept, links to nowhere skipped, and folders never nested."""
  source, target = tmp_path / 'source', tmp_path / 'target'
  source.mkdir()
  (source / 'a.py').write_bytes(b'# \xe4\r\nx = 1\r\n')
  (source / 'b.py').symlink_to('nowhere')
  args = ['--source', str(source), '--target']
  assert sync.run([*args, str(target)]) == 0
  assert (target / 'a.py').read_bytes() == (source / 'a.py').read_bytes()
  assert os.listdir(target) == ['a.py']
  assert sync.run([*args, str(source / 'public')]) == 2
  assert 'is within the other' in capsys.readouterr().err


def test_sync_deletes_stale_files(tmp_path, capsys):
  """Python files that the source has no more; nothing else is touched."""
  source, target = tmp_path / 'source', tmp_path / 'target'
  write_files(source, 'a.py', 'new/b.py', '.venv/c.py')
  kept = ['.git/hook.py', 'a.py', 'old/data.txt']
  write_files(target, 'z.py', 'old/y.py', *kept)
  assert sync.run(['--source', str(source), '--target', str(target)]) == 0
  output = capsys.readouterr().out
  assert 'Deleted z.py' in output and 'Deleted old/y.py' in output
  files = [x for x in target.rglob('*') if x.is_file()]
  found = sorted(str(x.relative_to(target)) for x in files)
  assert found == sorted([*kept, 'new/b.py'])


def test_sync_refuses_a_target_that_is_no_mirror(tmp_path, capsys):
  """A mistyped target must not lose its files."""
  source, target = tmp_path / 'source', tmp_path / 'target'
  write_files(source, 'a.py')
  write_files(target, 'mine.py')
  assert sync.run(['--source', str(source), '--target', str(target)]) == 2
  error = capsys.readouterr().err
  assert f'{target} is not a mirror of {source}' in error
  assert sorted(x.name for x in target.iterdir()) == ['mine.py']
