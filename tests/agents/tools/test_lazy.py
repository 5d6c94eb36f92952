"""Names that packages offer, at once or when they are used."""

import importlib

import pytest

import agents.tools
import planet.control
import planet.models
import planet.networks
import planet.tools
import planet.training
from tests import processes

# Functions that share the names of their submodules.
SHADOWING = """
import importlib
import types
for name in (
  'planet.tools.mask',
  'planet.tools.overshooting',
  'planet.tools.shape',
  'planet.tools.bind',
  'planet.tools.count_dataset',
  'planet.control.random_episodes',
  'planet.control.simulate',
  'planet.training.define_model',
  'agents.tools.simulate',
  'agents.tools.count_weights',
):
  package, _, attribute = name.rpartition('.')
  package = importlib.import_module(package)
  module = importlib.import_module(name)
  value = getattr(package, attribute)
  assert isinstance(module, types.ModuleType), name
  assert getattr(package, attribute) is value, name
  assert not isinstance(value, types.ModuleType), name
  assert value is getattr(module, attribute), name
  print(attribute)
"""


def test_functions_shadow_their_submodules():
  """As users write `planet.tools.mask(...)`, whatever they import besides."""
  output = processes.run_python('-c', SHADOWING)
  assert len(output.split()) == 10


@pytest.mark.parametrize(
  'package', [agents.tools, planet], ids=lambda x: x.__name__
)
def test_all_names_exist(package):
  for name in package.__all__:
    assert getattr(package, name) is not None
    assert name in dir(package)
  with pytest.raises(AttributeError, match='missing'):
    _ = package.missing


def test_one_home_for_one_concept():
  """Packages that had copies offer the shared piece under the same name."""
  for name in ('StreamingMean', 'count_weights', 'nested'):
    assert getattr(planet.tools, name) is getattr(agents.tools, name)
  # The same dictionary, strict by default.
  assert issubclass(planet.tools.AttrDict, agents.tools.AttrDict)
  assert planet.control.BatchEnv is agents.tools.BatchEnv
  # The same class, with PlaNet's first done flags.
  assert issubclass(
    planet.control.InGraphBatchEnv, agents.tools.InGraphBatchEnv
  )
  for name in ('ActionRepeat', 'ConvertTo32Bit', 'Async'):
    wrapper = getattr(planet.control.wrappers, name)
    assert wrapper is getattr(agents.tools.wrappers, name)


def test_public_names_of_the_original():
  """The names that programs written for the original import."""
  names = {
    'planet.control': 'planning BatchEnv DummyEnv InGraphBatchEnv MPCAgent '
    'random_episodes simulate discounted_return fixed_step_return '
    'lambda_return wrappers',
    'planet.models': 'Base RSSM SSM DRNN',
    'planet.networks': 'conv_ha feed_forward',
    'planet.tools': 'nested numpy_episodes preprocess schedule summary unroll '
    'AttrDict bind bound_action soft_copy_weights count_dataset '
    'count_weights CustomOptimizer filter_variables gif_summary '
    'image_strip_summary mask overshooting reshape_as shape StreamingMean '
    'track_network',
    'planet.training': 'utility define_model define_summaries Experiment '
    'Trainer running trainer',
  }
  for package, attributes in names.items():
    known = dir(importlib.import_module(package))
    assert set(attributes.split()) <= set(known), package
