"""The device that computes: which it is, why no GPU, options of sessions."""

import contextlib
import ctypes
import glob
import os

from agents.run import errors, streams
from agents.tools.tf1 import tf


def describe(use_gpu: bool = True) -> str:
  """Return a sentence about the device that a graph will run on.

  Args:
    use_gpu: Whether the program wants to use a GPU.
  """
  names = list_usable()
  if names and use_gpu:
    more = f', the first of {len(names)}' if len(names) > 1 else ''
    return f'Computing on the GPU {names[0]}{more}.'
  if names:
    return f'Computing on the CPU because use_gpu is False; found {names[0]}.'
  present = list_present()
  if not present:
    return 'Computing on the CPU; there is no NVIDIA GPU.'
  return (
    f'Computing on the CPU, although there is a GPU ({present[0]}): '
    f'{explain()}.'
  )


def session_options() -> tf.ConfigProto:
  """Return session options: a GPU computes what it can, with growing memory."""
  options = tf.ConfigProto(allow_soft_placement=True)
  options.gpu_options.allow_growth = True
  return options


def compute_capability() -> tuple[int, int] | None:
  """Return the compute capability of the GPU in use, None without one."""
  usable = _find_usable()
  if not usable:
    return None
  details = tf.config.experimental.get_device_details(usable[0])
  return details.get('compute_capability', (0, 0))


def list_present() -> list[str]:
  """Return the device files of all NVIDIA GPUs, usable or not."""
  # The driver of Windows shows itself as /dev/dxg.
  return sorted(glob.glob('/dev/nvidia[0-9]*') + glob.glob('/dev/dxg'))


def explain() -> str:
  """Return why TensorFlow cannot use an existing GPU."""
  hidden = os.environ.get('CUDA_VISIBLE_DEVICES')
  if hidden is not None and hidden.strip() in ('', '-1'):
    return f'CUDA_VISIBLE_DEVICES={hidden} hides it'
  if not tf.test.is_built_with_cuda():
    return 'this TensorFlow was built without CUDA'
  try:
    code = ctypes.CDLL('libcuda.so.1').cuInit(0)
  except OSError:
    return 'libcuda.so.1 of the NVIDIA driver cannot be loaded'
  if code:
    return f'the NVIDIA driver does not start (cuInit returns {code})'
  return (
    'TensorFlow does not find the CUDA libraries; install them with '
    + errors.how_to_install('gpu')
  )


def list_usable() -> list[str]:
  """Return the models of the GPUs that TensorFlow sees."""
  details = tf.config.experimental.get_device_details
  return [details(x).get('device_name', x.name) for x in _find_usable()]


def _find_usable():
  # Where there is a GPU, what TensorFlow says of its driver is worth reading.
  with contextlib.nullcontext() if list_present() else streams.hold_back(2):
    return tf.config.experimental.list_physical_devices('GPU')
