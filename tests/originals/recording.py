"""Recorded numbers of `tests/data`, computed again by the originals.

Run it by `python -m scripts.compare PATH --record`.

The files hold inputs, weights and settings beside the results. The module of an
original reads them and yields names of files with new results; keys that it
does not compute stay as they are.
"""

import importlib
import json
import os
import subprocess
from importlib import metadata

import numpy as np

from scripts import machine
from tests.originals import data
from tests.originals.cases import Case, largest

_PROVENANCE = """# Where these numbers come from

Written by `python -m scripts.compare PATH --record`, where PATH is a clone of
{original}, with the inputs that the files hold.
Differences are relative to the largest number before.

- Original: {original}, {version}
- Versions: {versions}
- Processor: {processor}

| file | results | difference |
|---|---|---|
{rows}

Results that a file has beyond these, and files without a row, are from the
first recording, whose program has not been kept.
"""
_ORIGINALS = {
  'planet': 'google-research/planet',
  'ppo': 'pybullet_envs.agents',
  'her': 'openai/baselines',
  'digideep': 'sharif1093/digideep',
}


def record(name: str, clone: str, out: str) -> None:
  """Write a folder of `tests/data` again, and a page about it beside it.

  Args:
    name: Name of the module of `tests.originals` for the original.
    clone: Its folder.
    out: Folder for what is needed meanwhile.
  """
  recorder = importlib.import_module(f'tests.originals.{name}_recorder')
  folder, results = recorder.prepare(clone, out)
  cases = [_write(folder, *x) for x in results]
  place = os.path.join(data.DATA, folder)
  page = _PROVENANCE.format(
    original=_ORIGINALS[name],
    version=_find_version(name, clone),
    rows='\n'.join(
      f'| {x.name} | {x.numbers} | {x.difference:.0e} |' for x in cases
    ),
    **machine.describe(),
  )
  for parent in (place, out):
    with open(os.path.join(parent, 'PROVENANCE.md'), 'w') as file_:
      file_.write(page)


def _find_version(name, clone):
  if name == 'ppo':
    return f'PyBullet {metadata.version("pybullet")}'
  command = ['git', '-C', clone, 'describe', '--always', '--abbrev=40']
  command += ['--exclude=*', '--dirty']
  done = subprocess.run(command, capture_output=True, text=True)
  return f'commit {done.stdout.strip() or "unknown"}'


def _write(folder, name, found):
  """Put results into a file; return how they differ from those before."""
  path = os.path.join(data.DATA, folder, name)
  if name.endswith('.json'):
    before = data.read_json(folder, name.removesuffix('.json'))
    found = {**before, **found}
    if found != before:
      with open(path, 'w') as file_:
        json.dump(found, file_, indent=1)
    return Case(name, len(found), 0.0 if found == before else np.inf, 0.0)
  before = data.read(folder, name.removesuffix('.npz'))
  found = {k: np.asarray(v, before[k].dtype) for k, v in found.items()}
  difference = largest(_compare(before[k], v) for k, v in found.items())
  np.savez_compressed(path, **{**before, **found})
  return Case(name, len(found), difference, 0.0)


def _compare(before, now):
  """Return the largest difference relative to the largest number."""
  if before.shape != now.shape:
    return np.inf
  if before.dtype.kind not in 'fc' or np.array_equal(before, now, True):
    return 0.0 if np.array_equal(before, now, before.dtype.kind == 'f') else 1.0
  scale = max(np.nanmax(np.abs(before)), 1e-6)
  both = np.isnan(before) & np.isnan(now)
  return float(np.where(both, 0, np.abs(before - now)).max() / scale)
