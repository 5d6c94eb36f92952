"""Tests of the sentence that names the device."""

import os
import subprocess
import sys
import types

import pytest

from agents.tools import devices
from agents.tools.tf1 import tf
from tests import golden


@pytest.fixture
def gpus(monkeypatch):
  """List of what TensorFlow sees, empty at first."""
  seen = []
  experimental = types.SimpleNamespace(
    list_physical_devices=lambda kind: list(seen),
    get_device_details=lambda x: {'device_name': x.model},
  )
  config = types.SimpleNamespace(experimental=experimental)
  fake = types.SimpleNamespace(config=config, test=tf.test)
  monkeypatch.setattr(devices, 'tf', fake)
  monkeypatch.setattr(devices, 'list_present', lambda: ['NVIDIA X'])
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  return seen


def put_driver(monkeypatch, library):
  monkeypatch.setattr(devices.ctypes, 'CDLL', library)


def test_usable(gpus):
  gpus.append(types.SimpleNamespace(model='NVIDIA X', name='GPU:0'))
  assert devices.describe() == 'Computing on the GPU NVIDIA X.'
  assert 'use_gpu is False; found NVIDIA X' in devices.describe(False)
  gpus.append(gpus[0])
  assert devices.describe() == 'Computing on the GPU NVIDIA X, the first of 2.'


def test_none(gpus, monkeypatch):
  monkeypatch.setattr(devices, 'list_present', lambda: [])
  assert devices.describe() == ('Computing on the CPU; there is no NVIDIA GPU.')


def test_this_machine():
  """The real TensorFlow answers, whatever there is."""
  assert devices.describe().startswith('Computing on the ')


@pytest.mark.parametrize('value', ['', '-1'])
def test_hidden(gpus, monkeypatch, value):
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', value)
  assert devices.describe() == (
    'Computing on the CPU, although there is a GPU (NVIDIA X): '
    f'CUDA_VISIBLE_DEVICES={value} hides it.'
  )


def test_no_driver(gpus, monkeypatch):
  def load(name):
    raise OSError(name)

  put_driver(monkeypatch, load)
  assert 'libcuda.so.1 of the NVIDIA driver' in devices.describe()


@pytest.mark.parametrize(
  'code, message', [(303, 'cuInit returns 303'), (0, 'reference-agents[gpu]')]
)
def test_broken_driver_and_missing_libraries(gpus, monkeypatch, code, message):
  driver = types.SimpleNamespace(cuInit=lambda flags: code)
  put_driver(monkeypatch, lambda name: driver)
  assert message in devices.describe()


def test_without_cuda(gpus, monkeypatch):
  monkeypatch.setattr(
    devices.tf, 'test', types.SimpleNamespace(is_built_with_cuda=lambda: False)
  )
  assert 'built without CUDA' in devices.describe()


@pytest.mark.skipif(bool(devices.list_present()), reason='there is a GPU')
def test_nothing_else_without_a_gpu():
  """TensorFlow complains when it looks for one."""
  code = 'from agents.tools import devices; print(devices.describe())'
  environ = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '2'}
  result = subprocess.run(
    [sys.executable, '-c', code],
    env=environ,
    cwd=golden.ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )
  assert result.stdout == 'Computing on the CPU; there is no NVIDIA GPU.\n'
