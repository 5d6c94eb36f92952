"""Weights & Biases in tests, always offline; a stand-in if not installed."""

import glob
import os
from importlib import util

from tests import golden

STAND_IN = os.path.join(golden.ROOT, 'tests', 'stand_ins')


def add_to(environ, mode='offline'):
  """Return environment variables with which programs find wandb.

  Args:
    environ: Dict of variables to begin with.
    mode: Value of WANDB_MODE, None to be online without an account.
  """
  environ = {k: v for k, v in environ.items() if not k.startswith('WANDB_')}
  if mode:
    environ['WANDB_MODE'] = mode
  # Never the account of who runs the tests.
  environ['NETRC'] = os.devnull
  spec = util.find_spec('wandb')
  if not spec or not spec.origin:
    path = environ.get('PYTHONPATH')
    environ['PYTHONPATH'] = f'{path}:{STAND_IN}' if path else STAND_IN
  return environ


def read(folder):
  """Return the bytes that were sent, one entry per start of the run."""
  pattern = os.path.join(
    glob.escape(str(folder)), 'wandb/offline-run-*/*.wandb'
  )
  found = []
  for path in sorted(glob.glob(pattern)):
    with open(path, 'rb') as file_:
      found.append((os.path.basename(path), file_.read()))
  return found
