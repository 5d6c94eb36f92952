"""What a run takes of the machine."""

import os
import sys
import time
import types

import pytest

from agents.pipeline import logs, resources
from agents.run import locks

LOGGER = logs.Logger()


def wait_for(condition, seconds=20):
  """Keep a processor busy until a condition holds."""
  limit = time.time() + seconds
  while not condition():
    assert time.time() < limit


def install_nvidia_smi(folder, monkeypatch, script):
  """Put a program of that name first on the path."""
  path = folder / 'nvidia-smi'
  path.write_text('#!/bin/sh\n' + script)
  path.chmod(0o755)
  monkeypatch.setenv('PATH', f'{folder}{os.pathsep}{os.environ["PATH"]}')


def test_processors_and_memory(tmp_path):
  """One line per window, and what is left at the end."""
  psutil = pytest.importorskip('psutil')
  path = str(tmp_path / 'monlog.json')
  thread = resources.ResourceThread(
    path, LOGGER, gpu=False, period=0.05, window=4, meta=lambda: {'epoch': 3}
  )
  thread.start()
  wait_for(lambda: os.path.exists(path) and logs.read(path))
  thread.stop()
  table = logs.read(path)
  cores = {f'/cpu/per/{i}' for i in range(psutil.cpu_count())}
  memory = {f'/cpu/memory/{x}' for x in ('total', 'used', 'mem')}
  assert set(table) == cores | memory | {'/cpu/all/total'}
  assert table['/cpu/all/total']['num'][0] == 4
  assert table['/cpu/all/total']['epoch'][0] == 3
  # The first sample has an interval to measure too.
  assert table['/cpu/all/total']['min'][0] > 0
  assert table['/cpu/all/total']['max'].max() <= 100
  total = table['/cpu/memory/total']['max'][0]
  # This process holds Python and NumPy, and less than the whole machine.
  assert 20 < table['/cpu/memory/mem']['max'].max() < total
  assert total == pytest.approx(psutil.virtual_memory().total / 2**20)


def test_missing_psutil(tmp_path, monkeypatch, capsys):
  """One warning, no thread, no file."""
  monkeypatch.setitem(sys.modules, 'psutil', None)
  path = tmp_path / 'monlog.json'
  thread = resources.ResourceThread(str(path), LOGGER, gpu=False)
  thread.start()
  thread.stop()
  assert capsys.readouterr().out.count('pip install psutil') == 1
  assert not path.exists()


@pytest.mark.parametrize(
  'value, cards',
  [
    (None, []),
    ('', []),
    ('-1', []),
    ('0', ['0']),
    ('0, 2,-1,3', ['0', '2']),
    ('GPU-8a56a4bc', ['GPU-8a56a4bc']),
  ],
)
def test_visible_cards(value, cards, monkeypatch):
  """CUDA ignores what comes after the first invalid entry."""
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  if value is not None:
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', value)
  assert resources.visible_cards() == cards


def test_cards(tmp_path, monkeypatch):
  """Load is the mean and memory the sum over the cards that are visible."""
  install_nvidia_smi(
    tmp_path,
    monkeypatch,
    'echo "$*" >"$0.args"; echo 30, 100, 5; echo 50, 200, 7',
  )
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0,2')
  path = str(tmp_path / 'monlog.json')
  thread = resources.ResourceThread(
    path, LOGGER, cpu=False, period=0.01, window=2
  )
  thread.start()
  wait_for(lambda: os.path.exists(path) and logs.read(path))
  thread.stop()
  table = logs.read(path)
  means = {name: x['sum'][0] / x['num'][0] for name, x in table.items()}
  assert means == {
    '/gpu/load': 40,
    '/gpu/memory/total': 300,
    '/gpu/memory/used': 12,
  }
  assert '--id=0,2' in (tmp_path / 'nvidia-smi.args').read_text()


def test_unknown_load(tmp_path, monkeypatch):
  """Parts of a card have no load of their own."""
  install_nvidia_smi(tmp_path, monkeypatch, 'echo "[N/A], 100, 5"')
  assert set(resources.sample_cards(['0'])) == {
    '/gpu/memory/total',
    '/gpu/memory/used',
  }


def test_failing_driver(tmp_path, monkeypatch):
  """One warning; the run goes on."""
  install_nvidia_smi(tmp_path, monkeypatch, 'exit 9')
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0')
  path = str(tmp_path / 'monlog.json')
  heard = []
  logger = types.SimpleNamespace(warn=heard.append)
  thread = resources.ResourceThread(path, logger, cpu=False, period=0.01)
  thread.start()
  wait_for(lambda: heard)
  time.sleep(0.1)
  thread.stop()
  (sentence,) = heard
  assert 'no longer recorded' in sentence and '9' in sentence


def test_folder_that_is_gone(tmp_path, capfd):
  """The run says so, not this thread."""
  folder = tmp_path / 'run'
  folder.mkdir()
  held = locks.try_lock(str(folder / 'lock'))
  thread = resources.ResourceThread(
    str(folder / 'monlog.json'), LOGGER, gpu=False, period=0.05, window=4
  )
  folder.rename(tmp_path / 'elsewhere')
  thread.start()
  thread.join(20)
  assert not thread.is_alive() and 'Traceback' not in capfd.readouterr().err
  held.release()
