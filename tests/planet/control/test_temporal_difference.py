"""Returns along time, against `planet/temporal_difference`."""

import pytest

from agents.tools.tf1 import tf
from planet import control
from tests import golden, graphs

# Function and arguments after the rewards; text names recorded arrays.
CASES = {
  'discounted_0.9_bootstrap': ('discounted', 0.9, 'bootstrap'),
  'discounted_0.9_none': ('discounted', 0.9, None),
  'discounted_1_none': ('discounted', 1, None),
  'discounted_1_bootstrap': ('discounted', 1, 'bootstrap'),
  'lambda_0.8_disc_0.9_bootstrap': ('lambda', 'value', 'bootstrap', 0.9, 0.8),
  'lambda_0.8_disc_0.9_none': ('lambda', 'value', None, 0.9, 0.8),
  'lambda_1_disc_0.9_bootstrap': ('lambda', 'value', 'bootstrap', 0.9, 1.0),
  'lambda_0_disc_0.9_bootstrap': ('lambda', 'value', 'bootstrap', 0.9, 0.0),
  'fixed_steps_2_disc_0.9_value': ('fixed_step', 'value', 0.9, 2),
  'fixed_steps_3_disc_0.9_none': ('fixed_step', None, 0.9, 3),
}


def define(name, time_first=False, **kwargs):
  """Rewards [batch, time] and their returns for a recorded case."""
  data = golden.load('planet/temporal_difference')
  load = lambda key: tf.constant(data['in/' + key])
  kind, *args = CASES[name]
  function = getattr(control, f'{kind}_return')
  args = [load('reward')] + [load(x) if isinstance(x, str) else x for x in args]
  if time_first:
    args = [
      tf.transpose(x) if isinstance(x, tf.Tensor) and x.shape.ndims == 2 else x
      for x in args
    ]
  return args[0], function(*args, 0 if time_first else 1, **kwargs)


@pytest.mark.parametrize('name', CASES)
@pytest.mark.parametrize('time_first', [False, True])
def test_recorded_returns(name, time_first):
  """All variants, rtol 1e-5; the time may be any dimension."""
  expected = golden.load('planet/temporal_difference')['out/' + name]
  _, return_ = define(name, time_first)
  golden.assert_close(
    graphs.evaluate(return_), expected.T if time_first else expected
  )


def test_every_recording_is_used():
  data = golden.load('planet/temporal_difference')
  assert set(data.below('out')) == set(CASES)


@pytest.mark.parametrize('name', CASES)
def test_returns_are_constants_unless_asked(name):
  reward, return_ = define(name)
  assert tf.gradients(return_, reward) == [None]
  reward, return_ = define(name, stop_gradient=False)
  assert tf.gradients(return_, reward) != [None]
