"""Compare the pipeline with the NumPy parts of sharif1093/digideep.

Compares memories, samplers, normalizers, noise, statistics and names of values,
with the inputs of the numbers recorded in `tests/data/pipeline`.
"""

import functools
import json
import os
import sys
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from tests.originals import data
from tests.originals.cases import Case, largest, relative

ORIGINAL = 'digideep/memory/ringbuffer.py'
COMMIT = 'e42f10a'
FOLDER, RECORDED = 'pipeline', 'pipeline_golden'
# Cases that are not in the recorded file.
_FURTHER = 'replay', 'normalizer', 'noise'
# PyTorch and dependencies of wrappers, which NumPy parts do not use.
_UNUSED = (
  'torch torch.nn torch.nn.functional torch.optim torch.distributions '
  'torch.utils torch.utils.data torch.utils.data.sampler colorama yaml cv2 '
  'gym.wrappers.monitor'
)
_OBSERVATION = '/observations/agent'
_CLIP = 1.5
_KEY = '/agents/agent/artifacts/{}'
_NOISE = {'mu': 0.1, 'theta': 0.15, 'sigma': 0.2}


def run(side: str, clone: str, out: str) -> None:
  """Compute all numbers with one side and write them as JSON."""
  before = data.read_json(FOLDER, RECORDED)
  lib = _original(clone) if side == 'original' else _ours()
  found: dict[str, Any] = {
    'ring_chunk3_buffer4_overrun1': _store(lib.ring(3, 4), 9, lib.tell_ring),
    'roll_chunk3_buffer2': _store(lib.roll(3, 2), 5, lib.tell_roll),
  }
  # Entries that were never written have no defined value.
  for row in found['ring_chunk3_buffer4_overrun1']:
    row['worker0'][row['length'] :] = [None] * (12 - row['length'])
  for row in found['roll_chunk3_buffer2']:
    del row['worker0'][row['i_index'] :]
  for name in ('gae', 'discounted'):
    given = {k: before[name][k] for k in ('gamma', 'tau', 'inputs')}
    inputs = {k: np.float32(v) for k, v in given['inputs'].items()}
    tau = given['tau'] if name == 'gae' else None
    chunk = lib.advantages(inputs, given['gamma'], tau)
    # The half-step has no value; the original leaves its memory unchanged.
    names = [x for x in before[name] if x not in given]
    found[name] = {
      **given,
      **{x: chunk[_KEY.format(x)][:, :-1].tolist() for x in names},
    }
  values = before['monitor']['values']
  for value in values:
    lib.monitor('/x', value)
  found['monitor'] = {'values': values, **lib.pack(lib.monitor)['/x']}
  inp = before['flatten']['inp']
  found['flatten'] = {'inp': inp, 'out': lib.flatten(inp)}
  rng = np.random.RandomState(1)
  batches = rng.normal(3, 2, (5, 4, 3)).astype(np.float32)
  masks = np.float32(rng.uniform(size=(20, 2, 1)) > 0)
  np.random.seed(2)
  found['replay'] = lib.replay(16)
  for batch in batches:
    lib.update(batch)
  found['normalizer'] = lib.normalize(batches).tolist()
  found['noise'] = [lib.noise(x).tolist() for x in masks]
  with open(os.path.join(out, f'{side}.json'), 'w') as file_:
    json.dump(found, file_, indent=1)


def compare(out: str) -> Iterator[Case]:
  """Yield one case per part."""
  original, ours = (_read(out, side) for side in ('original', 'ours'))
  for name in original:
    a, b = dict(_leaves(original[name])), dict(_leaves(ours[name]))
    same = a.keys() == b.keys()
    values = [relative(np.array(a[k]), np.array(b[k])) for k in a if same]
    difference = largest(values) if same else np.inf
    yield Case(name.replace('_', ' '), len(a), difference, 1e-5)


def record(clone: str, out: str) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yield the name of the recorded file and its content from the original."""
  run('original', clone, out)
  found = _read(out, 'original').items()
  yield f'{RECORDED}.json', {k: v for k, v in found if k not in _FURTHER}


def _read(out, side):
  with open(os.path.join(out, f'{side}.json')) as file_:
    return json.load(file_)


def _leaves(value, path=''):
  """Yield paths and numbers of nested lists and dicts; None becomes -1."""
  if isinstance(value, (dict, list)):
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in pairs:
      yield from _leaves(part, f'{path}|{key}')
  else:
    yield path, -1.0 if value is None else float(value)


def _chunk(number):
  """Return a chunk of three steps, as in the tests."""
  values = np.arange(3 * number, 3 * number + 4, dtype=np.float32)
  values = values + 100 * np.arange(2, dtype=np.float32)[:, None]
  flags = np.zeros_like(values)[..., None]
  return {
    _OBSERVATION: values[..., None],
    '/masks': flags + 1,
    '/terminals': flags,
    '/truncations': flags,
  }


def _store(memory, count, tell):
  """Store chunks; return the result of `tell` after each one."""
  rows = []
  for number in range(count):
    memory.store(_chunk(number))
    row = {'store': number, **tell(memory)}
    row['worker0'] = memory.get_buffer()[_OBSERVATION][0, :, 0]
    rows.append({k: np.array(v).tolist() for k, v in row.items()})
  return rows


def _fill(memory):
  _store(memory, 6, lambda unused: {})
  return memory


def _tell_batch(batch):
  return [batch[x].tolist() for x in (_OBSERVATION, f'{_OBSERVATION}_2')]


def _original(clone):
  """Return the parts of the original under the names that `run` uses."""
  for name in _UNUSED.split():
    sys.modules[name] = mock.MagicMock()
  sys.path.insert(0, clone)
  from digideep.agent import noises
  from digideep.agent.ddpg import sampler as replay_sampler
  from digideep.agent.ppo import sampler
  from digideep.environment import data_helpers
  from digideep.environment.wrappers import normalizers
  from digideep.memory import ringbuffer, rollbuffer
  from digideep.utility import monitoring

  def make(kind, steps, chunks):
    sizes = {'chunk_sample_len': steps, 'buffer_chunk_len': chunks}
    options = {'name': '', 'overrun': 1, 'keep_old_checkpoints': True}
    return kind.Memory(mock.MagicMock(), **sizes, **options)

  def advantages(chunk, gamma, tau):
    workers, steps = chunk['/rewards'].shape[:2]
    info = {'agent_name': 'agent', 'num_workers': workers}
    how = {'gamma': gamma, 'use_gae': tau is not None, 'tau': tau}
    info |= {'num_steps': steps - 1, 'compute_advantages': how}
    return sampler.compute_advantages(chunk, info)

  def replay(count):
    info = {'batch_size': count, 'observation_path': '/agent'}
    memory = _fill(make(ringbuffer, 3, 4))
    return _tell_batch(replay_sampler.get_sample_memory(memory, info))

  normalizer = normalizers.Normalizer((3,), clip=_CLIP, eps=1e-8)
  # The original starts with a count of 0.0001.
  normalizer.running_mean.count = 0
  noise = noises.OrnsteinUhlenbeckNoise(lim=1, **_NOISE)
  return types.SimpleNamespace(
    ring=functools.partial(make, ringbuffer),
    roll=functools.partial(make, rollbuffer),
    tell_ring=lambda x: {
      **{k: x.state[k] for k in ('start', 'end')},
      **{k: getattr(x, k) for k in ('length', 'full')},
      'valid': x.get_index_valid_elements(),
      'last_chunk': x.get_index_last_chunk(),
    },
    tell_roll=lambda x: {
      **{k: x.state[k] for k in ('i_index', 'i_chunk')},
      'full': x.full,
      'size': x.buffer_size,
    },
    advantages=advantages,
    monitor=monitoring.Monitor(),
    pack=lambda x: (x.pack_data(), x.pack[0]['data'])[1],
    flatten=data_helpers.flatten_dict,
    replay=replay,
    update=normalizer.update,
    normalize=normalizer.normalize,
    noise=lambda masks: noise(np.zeros((len(masks), 3))),
  )


def _ours():
  """Return our parts under the same names."""
  from agents.pipeline import ddpg, logs, normalizers, samplers, worker
  from agents.pipeline import memory as memories

  def make(kind, steps, chunks):
    sizes = {'chunk_sample_len': steps, 'buffer_chunk_len': chunks}
    return kind(mock.MagicMock(), **sizes)

  def replay(count):
    memory = _fill(make(memories.RingMemory, 3, 4))
    # The original samples steps before workers.
    draws = [np.random.randint(x, size=count) for x in (memory.num_valid, 2)]
    with mock.patch.object(
      np.random, 'randint', lambda *_, **unused: draws.pop()
    ):
      return _tell_batch(samplers.sample_replay(memory, {'batch_size': count}))

  normalizer = normalizers.ObservationNormalizer(_CLIP)
  return types.SimpleNamespace(
    ring=functools.partial(make, memories.RingMemory),
    roll=functools.partial(make, memories.RollMemory),
    tell_ring=lambda x: {
      **{k: getattr(x, k) for k in ('start', 'end', 'length')},
      'full': x.length == x.capacity,
      'valid': x.get_index(np.arange(x.num_valid)),
      'last_chunk': x.get_index(np.arange(x.length - 4, x.length)),
    },
    tell_roll=lambda x: {
      'i_index': x.length,
      'i_chunk': (x.length - 1) // 3,
      'full': x.length == x.capacity,
      'size': x.capacity,
    },
    advantages=lambda chunk, gamma, tau: samplers.compute_advantages(
      chunk, {'agent': 'agent', 'gamma': gamma, 'tau': tau}
    ),
    monitor=logs.Monitor(),
    pack=lambda x: x.pack(),
    flatten=lambda x: {f'/{k}': v.item() for k, v in worker.flatten(x).items()},
    replay=replay,
    update=lambda x: normalizer.update({'x': x}),
    normalize=lambda x: normalizer.transform({'x': x})['x'],
    noise=ddpg.Noise(3, **_NOISE).step,
  )
