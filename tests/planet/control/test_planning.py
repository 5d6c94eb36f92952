"""Planning with recorded draws, in a toy world and with a model."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet import networks
from planet.control import planning
from planet.scripts import objectives
from planet.tools.attr_dict import AttrDict
from tests import golden, graphs
from tests.planet.control import toy


def plan(monkeypatch, iterations, envs):
  """Plans [envs, horizon, actions] of some of the recorded environments."""
  data = golden.load('planet/cem_toy')
  noise = data['in/noise'][:, envs]
  _, _, amount, horizon, size = noise.shape
  with graphs.recorded_noise(monkeypatch, noise) as draws:
    mean = planning.cross_entropy_method(
      toy.make_cell(),
      toy.objective,
      toy.make_state(envs),
      (3,),
      (size,),
      horizon,
      None,
      amount=amount,
      topk=int(data['cfg/topk']),
      iterations=iterations,
    )
  assert len(draws) == (iterations > 0)
  assert mean.shape.as_list()[1:] == [horizon, size]
  return graphs.evaluate(mean)


@pytest.mark.parametrize('iterations', [1, 2, 3, 4])
@pytest.mark.parametrize('envs', [[0], [1], [0, 1]], ids=str)
def test_recorded_toy_plans(monkeypatch, iterations, envs):
  """`planet/cem_toy`: mean after each iteration; MODEL.

  Two environments get the plans that each of them gets alone.
  """
  expected = golden.load('planet/cem_toy')['out/mean_per_iteration']
  mean = plan(monkeypatch, iterations, envs)
  golden.assert_close(mean, expected[iterations - 1, envs], **golden.MODEL)


def test_two_environments_do_not_mix(monkeypatch):
  """The recorded mistake of the original is far from what we do."""
  wrong = golden.load('planet/cem_toy')[
    'out/original_batched_mean_WRONG_TILING'
  ]
  assert np.abs(plan(monkeypatch, 4, [0, 1]) - wrong).max() > 0.1


def test_no_iterations(monkeypatch):
  """`planet/cem_toy`: the plan is zero."""
  expected = golden.load('planet/cem_toy')['out/iterations_0']
  golden.assert_close(plan(monkeypatch, 0, [0]), expected)


def define_model(meta):
  """Graph of a model and its reward head."""
  head = meta['reward_head']
  cell = graphs.make_cell(meta)
  reward = tf.make_template(
    'head_reward',
    networks.feed_forward,
    num_layers=head['num_layers'],
    units=head['units'],
    activation=getattr(tf.nn, head['activation']),
    data_shape=head['data_shape'],
  )
  return AttrDict(cell=cell, heads=AttrDict(reward=reward))


@pytest.mark.parametrize('iterations', [1, 2, 3])
def test_recorded_model_plans(monkeypatch, iterations):
  """`planet/cem_rssm`: sum of predicted rewards as objective; MODEL."""
  data = golden.load('planet/cem_rssm')
  meta, noise = data.meta, data['in/noise']
  graph = define_model(meta)
  with graphs.recorded_noise(monkeypatch, noise) as draws:
    mean = planning.cross_entropy_method(
      graph.cell,
      lambda state: objectives.reward(state, graph, None),
      graphs.constants(data.below('in/state')),
      (int(data['cfg/embed_size']),),
      noise.shape[-1:],
      noise.shape[-2],
      graph,
      amount=int(data['cfg/amount']),
      topk=int(data['cfg/topk']),
      iterations=iterations,
    )
  assert len(draws) == 1
  roles = graphs.cell_roles(meta)
  roles['head_reward'] = ['reward_hidden0', 'reward_hidden1', 'reward_mean']
  pairs = graphs.pair_weights(roles)
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    mean = sess.run(mean)
  expected = data['out/mean_per_iteration'][iterations - 1]
  golden.assert_close(mean[0], expected, **golden.MODEL)


def test_plans_have_no_gradient():
  """The planner is for acting; it costs no memory for gradients."""
  state = toy.make_state([0])
  mean = planning.cross_entropy_method(
    toy.make_cell(), toy.objective, state, (3,), (2,), 3, None, 9, 3, 2
  )
  assert mean.op.type == 'Exit'
  assert not any('Stack' in x.type for x in mean.graph.get_operations())


def test_initial_mean():
  """A plan to begin with is kept where candidates do not matter."""
  start = tf.random_uniform([2, 3, 2], -1, 1, seed=1)
  settings = (toy.make_cell(), toy.objective, toy.make_state([0, 1]), (3,))
  start, same, near = graphs.evaluate(
    [start]
    + [
      planning.cross_entropy_method(
        *settings, (2,), 3, None, 900, 900, x, initial_mean=start
      )
      for x in (0, 1)
    ]
  )
  np.testing.assert_array_equal(same, start)
  # All candidates are kept: the mean of a clipped normal distribution.
  assert (np.sign(near) == np.sign(start))[np.abs(start) > 0.3].all()
