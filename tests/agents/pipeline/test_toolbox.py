"""Trees of parameters: their form, and what they may hold."""

import collections
import pathlib
import re

import numpy as np
import pytest

from agents.pipeline import (
  base,
  ddpg,
  loader,
  main,
  runner,
  samplers,
  session,
  toolbox,
)
from agents.pipeline.episodes import EpisodeMemory
from agents.pipeline.memory import RingMemory
from agents.run import errors
from tests.agents.pipeline import toy


def test_data_of_a_module():
  """What NumPy and the user's code give becomes what can be stored."""
  shared = {'size': np.int64(3), 'low': np.zeros(2), 'pair': (1, 2.5)}
  tree = collections.OrderedDict(
    a=shared, b=shared, path=pathlib.Path('x'), name=toy.MeanAgent, f=max
  )
  data = toolbox.to_data(tree)
  assert data['a'] == {'size': 3, 'low': [0.0, 0.0], 'pair': [1, 2.5]}
  assert type(data['a']['size']) is int
  # Changed in one place, it changes in both, as in the tree of the module.
  assert data['a'] is data['b']
  assert data['path'] == 'x'
  assert toolbox.get_class(data['name']) is toy.MeanAgent
  assert data['f'] == {'reference': 'builtins:max'}


@pytest.mark.parametrize('value', [lambda: 3, object(), 1j])
def test_no_data(value):
  with pytest.raises(errors.UsageError, match='value of params.a.0 is'):
    toolbox.to_data({'a': [value]})


def test_data_that_contains_itself():
  tree = {'a': [3]}
  tree['a'].append(tree)
  with pytest.raises(errors.UsageError, match='params.a.1 contains itself'):
    toolbox.to_data(tree)


def test_values_of_a_panel(tmp_path, monkeypatch):
  """What a module gives is stored, and is the same after reading."""
  given = {'size': np.float32(0.5), 'limit': float('inf'), 'f': max}
  monkeypatch.setattr(toy, 'cpanel', {**toy.cpanel, **given})
  main.main(
    [
      *('--params', toy.__name__, '--session-path', str(tmp_path)),
      *('--session-name', 'x', '--create-session-only', '--no-monitor-cpu'),
    ]
  )
  stored = loader.Loader(str(tmp_path / 'x')).cpanel
  assert stored['size'] == 0.5 and stored['limit'] == float('inf')
  assert stored['f'] == {'reference': 'builtins:max'}
  given = session.load(
    str(tmp_path / 'x'), str(tmp_path / 'x/checkpoints/checkpoint-0')
  )
  assert given[0] == stored


@pytest.mark.parametrize('params', [None, [], 3])
def test_no_tree(monkeypatch, params):
  monkeypatch.setattr(toy, 'gen_params', lambda unused_cpanel: params)
  with pytest.raises(errors.UsageError, match='return a mapping'):
    session.generate(toy.__name__, {})


MEMORY = 'agents.pipeline.memory.RingMemory'


@pytest.mark.parametrize(
  'node, words',
  [
    (None, 'node of memory 1 is None'),
    ({'args': {}}, 'give the name of a class'),
    ({'name': 3}, 'give the name of a class'),
    ({'name': 'agents.pipeline.memory.np'}, 'give the name of a class'),
    ({'name': MEMORY, 'args': [1]}, 'args a mapping'),
    ({'name': MEMORY, 'arg': {}}, 'Did you mean args'),
    ({'name': MEMORY, 'args': {'f': {'reference': 3}}}, '3 is not the name'),
  ],
)
def test_wrong_node(node, words):
  with pytest.raises(errors.UsageError, match=words):
    toolbox.get_part(node, 'memory 1')


def fail(size):
  return dict(size, size=size)


class Without:
  pass


@pytest.mark.parametrize(
  'name, args, words',
  [
    (MEMORY, {'chunk_len': 1}, "'chunk_len'. Did you mean chunk_sample_len"),
    (f'{__name__}.fail', {}, "missing 1 required positional argument: 'size'"),
    (f'{__name__}.Without', {'x': 1}, 'Without() takes no arguments'),
    # Arguments of a base class.
    ('agents.pipeline.ddpg.DDPGAgent', {'n_updat': 1}, 'Did you mean n_update'),
  ],
)
def test_wrong_arguments(name, args, words):
  make = toolbox.get_part({'name': name, 'args': args}, 'part 1')
  with pytest.raises(errors.UsageError, match=re.escape(words)) as caught:
    make(*([None, {}] if 'ddpg' in name else []))
  assert 'Cannot create part 1' in str(caught.value)


@pytest.mark.parametrize(
  'kind', [base.AgentBase, base.ExplorerBase, base.MemoryBase]
)
def test_arguments_of_a_subclass(kind):
  """It may pass its own to the base class, as in digideep."""

  class Own(kind):
    def __init__(self, session, other, **params):
      super().__init__(session, other, **params)

  assert Own(None, {}, size=3).params == {'size': 3}


def test_error_within_a_constructor():
  """Is the user's own, and stays as it is."""
  make = toolbox.get_part({'name': f'{__name__}.fail', 'args': {'size': 1}})
  with pytest.raises(TypeError, match='not iterable'):
    make()


@pytest.mark.parametrize(
  'change, words',
  [
    ({'memory': None}, "'memory' of the parameters is None"),
    ({'agents': {}}, "'agents' of the parameters is {}"),
    ({'agents': [{}]}, 'give a mapping'),
    ({'agents': {'a b': {}}}, "the name 'a b'"),
    ({'agents': {3: {}}}, 'the name 3'),
    ({'explorer': {'trian': {}}}, 'Did you mean trian'),
  ],
)
def test_wrong_nodes(change, words):
  tree = {**toy.gen_params(toy.cpanel), **change}
  with pytest.raises(errors.UsageError, match=words):
    runner.find_nodes(tree, ['train', 'test'])


@pytest.mark.parametrize(
  'function, words',
  [
    (lambda: RingMemory(None, chunk_sample_len='a'), "len of memory 'train'"),
    (lambda: ddpg.NoiseSettings.read({'thet': 1}), 'Did you mean theta'),
    (lambda: samplers.Compose(['f']), "sampler is 'f', but must be a function"),
    (lambda: samplers.Compose([]), 'at least one function'),
    (lambda: base.find_shape({'typ': 'Box'}, 'inputs'), 'dim of the inputs'),
    (lambda: base.find_limits({'typ': 'Box', 'dim': [1]}, 'x'), 'give as lim'),
    (lambda: base.count_choices({'typ': 'Discrete'}, 'x'), 'dim of the x'),
    (
      lambda: base.find_limits({'dim': [3], 'lim': [[0, 1], [2, 3]]}, 'x'),
      'lists of the shape dim',
    ),
    (lambda: samplers.pick_memory({'train': 1}, {'mode': 'x'}), "Memory 'x'"),
    (lambda: samplers.sample_replay(None, {}), 'None as batch_size'),
    (lambda: runner.Runner({'runner': {'randargs': {'sed': 1}}}), 'randargs'),
    (lambda: session.Threads.read({'intraop': 1}), 'Did you mean intra_op'),
    (lambda: session.Threads.read({'inter_op': 10**5}), 'equal to 1024'),
    (lambda: RingMemory(None, exclude_keys=3), "_keys of memory 'train'"),
    (
      lambda: EpisodeMemory(None, keys='a', max_length=3),
      "keys of memory 'train'",
    ),
    (
      lambda: EpisodeMemory(None, keys=['/reward'], max_length=3).store(
        {'/masks': None, '/rewards': None}
      ),
      'Did you mean /rewards',
    ),
    (lambda: base.pick({'/rewards': 1}, '/lengths'), "batch '/lengths'"),
  ],
)
def test_wrong_values(function, words):
  with pytest.raises(errors.UsageError, match=words):
    function()
