"""Normalizers, networks, Adam and helpers against recorded numbers."""

import joblib
import numpy as np
import pytest

from agents.run import errors
from agents.tools.tf1 import tf
from baselines_her import actor_critic, her, mpi, normalizer, tf_util, util
from tests import golden
from tests.baselines_her import toy

STATS = ('sum', 'sumsq', 'count', 'mean', 'std')


@pytest.mark.parametrize('case', range(2))
def test_normalizer(case):
  """normalizer.npz: variables after each update, and what they lead to."""
  data = toy.group(toy.load('normalizer'), f'case{case}_')
  size, eps, clip = int(data['meta'][0]), data['meta'][1], data['meta'][2]
  with toy.session() as sess:
    with tf.variable_scope('n'):
      stats = normalizer.Normalizer(size, float(eps), float(clip), sess)
    sess.run([x.initializer for x in tf.global_variables()])
    assert not tf.trainable_variables()
    probe = tf.placeholder(tf.float32, [None, size])
    feed = {probe: data['probe']}
    plain = stats.normalize(probe)
    golden.assert_close(sess.run(plain, feed), data['normalized_before'])
    for step in range(int(data['n_updates'])):
      stats.update(data[f'update{step}'])
      if data[f'recomputed{step}']:
        stats.recompute_stats()
      for part in STATS:
        golden.assert_close(
          sess.run(getattr(stats, part)), data[f'{part}{step}']
        )
    results = [plain, stats.normalize(probe, 1.0), stats.denormalize(probe)]
    names = ('normalized', 'normalized_clip1', 'denormalized')
    for name, value in zip(names, sess.run(results, feed)):
      golden.assert_close(value, data[name], name=name)


def test_identity_normalizer():
  with toy.session() as sess:
    stats = normalizer.IdentityNormalizer(2, std=4.0)
    stats.update(np.ones((3, 2)))
    stats.recompute_stats()
    value = tf.constant([[8.0, 2.0]])
    there, back = sess.run([stats.normalize(value), stats.denormalize(value)])
    np.testing.assert_array_equal(there, [[2, 0.5]])
    np.testing.assert_array_equal(back, [[32, 8]])


def test_actor_critic():
  """actor_critic.npz: values, and how the actor's weights move them."""
  data = toy.load('actor_critic')
  dims = {k: data['in_' + k].shape[1] for k in 'ogu'}
  with toy.session() as sess:
    with tf.variable_scope('t'):
      stats = {}
      for key in 'og':
        with tf.variable_scope(f'{key}_stats'):
          stats[key] = normalizer.Normalizer(dims[key], 0.01, 5, sess)
      inputs = {
        k: tf.placeholder(tf.float32, [None, n]) for k, n in dims.items()
      }
      with tf.variable_scope('main'):
        net = actor_critic.ActorCritic(
          inputs,
          *(dims[k] for k in 'ogu'),
          max_u=float(data['max_u']),
          o_stats=stats['o'],
          g_stats=stats['g'],
          hidden=32,
          layers=3,
        )
    trainable = tf.trainable_variables()
    assert [x.name for x in trainable] == list(data['trainable_names'])
    sess.run([x.initializer for x in tf.global_variables()])
    for variable in tf.global_variables():
      if 'w.' + toy.key_of(variable.name) in data:
        variable.load(data['w.' + toy.key_of(variable.name)], sess)
    feed = {inputs[k]: data['in_' + k] for k in dims}
    for name, tensor in (
      ('pi', net.pi_tf),
      ('Q_pi', net.Q_pi_tf),
      ('Q', net.Q_tf),
      ('input_Q', net._input_Q),
    ):
      golden.assert_close(sess.run(tensor, feed), data[name], name=name)
    wanted = [x for x in trainable if '/pi/' in x.name]
    found = sess.run(tf.gradients(tf.reduce_mean(net.Q_pi_tf), wanted), feed)
    assert len(found) == 8
    for index, gradient in enumerate(found):
      golden.assert_close(gradient, data[f'dQpi_dpi{index}'])


@pytest.mark.parametrize('scale', [0, 1])
def test_adam(scale):
  """mpi_adam.npz: twelve updates from outside, as from NumPy."""
  data = toy.load('mpi_adam')
  theta = data[f'theta_scale{scale}']
  with toy.session() as sess:
    a, b = tf.Variable(theta[0][:3]), tf.Variable(theta[0][3:].reshape(2, 5))
    loss = tf.reduce_sum(tf.square(a)) + tf.reduce_sum(tf.sin(b))
    sess.run(tf.global_variables_initializer())
    adam = mpi.MpiAdam([a, b], scale_grad_by_procs=bool(scale))
    gradient = tf_util.flatgrad(loss, [a, b])
    for step in range(12):
      value, vector = sess.run([loss, gradient])
      golden.assert_close(value, data[f'loss_scale{scale}'][step])
      golden.assert_close(vector, data[f'grad_scale{scale}'][step])
      adam.update(vector, float(data['lr']))
      got = np.concatenate([x.ravel() for x in sess.run([a, b])])
      golden.assert_close(got, theta[step + 1])
    golden.assert_close(adam.m, data[f'm_scale{scale}'])
    golden.assert_close(adam.v, data[f'v_scale{scale}'])
    assert adam.t == 12
    adam.set_slots([x * 0 for x in adam.get_slots()])
    assert adam.t == 0 and not adam.v.any()


def test_episode_helpers():
  """util.npz: time-major episodes become batch-major."""
  data = toy.load('util')
  episode = {k: list(data['in_' + k]) for k in toy.EPISODE_KEYS}
  batch = util.convert_episode_to_batch_major(episode)
  for key in toy.EPISODE_KEYS:
    np.testing.assert_array_equal(batch[key], data['out_' + key])
  count = util.transitions_in_episode_batch(batch)
  assert count == data['transitions_in_episode_batch']


def test_flat_gradients():
  """util.npz: row by row, in the order of the variables."""
  data = toy.load('util')
  gradients = [data[f'grad{x}'] for x in range(3) if f'grad{x}' in data]
  assert len(gradients) >= 2
  with toy.session() as sess:
    variables = [tf.Variable(x) for x in gradients]
    flat = util.flatten_grads(variables, [tf.constant(x) for x in gradients])
    np.testing.assert_array_equal(sess.run(flat), data['flat_grads'])


def test_moments_and_averages():
  """util.npz: of one process."""
  data = toy.load('util')
  count = sum(key.startswith('mom') and key.endswith('_x') for key in data)
  assert count
  for index in range(count):
    case = toy.group(data, f'mom{index}_')
    mean, std, number = mpi.mpi_moments(case['x'], axis=int(case['axis']))
    np.testing.assert_allclose(mean, case['mean'], 1e-9, 1e-12)
    np.testing.assert_allclose(std, case['std'], 1e-9, 1e-12)
    assert number == case['count']
  for value, wanted in zip(data['mpi_average_in'], data['mpi_average_out']):
    np.testing.assert_allclose(her.mpi_average(float(value)), wanted, 1e-9)
  listed = [float(x) for x in data['mpi_average_list_in']]
  np.testing.assert_allclose(
    her.mpi_average(listed), data['mpi_average_list_out'], 1e-9
  )
  for nothing in ([], [0.0, 0.0]):
    assert her.mpi_average(nothing) == 0 and her.mpi_average(nothing).ndim == 0
  assert np.isnan(her.mpi_average(np.nan))


def test_files_of_variables(tmp_path):
  """All variables come back; other models are refused with a sentence."""
  path = str(tmp_path / 'new' / 'weights')
  with toy.session() as sess:
    variable = tf.get_variable('a', initializer=[1.0, 2.0])
    sess.run(variable.initializer)
    tf_util.save_variables(path)
    variable.load([0.0, 0.0], sess)
    tf_util.load_variables(path)
    np.testing.assert_array_equal(sess.run(variable), [1, 2])
    other = tf.get_variable('b', initializer=[1.0])
    sess.run(other.initializer)
    with pytest.raises(errors.UsageError, match='no variable b:0'):
      tf_util.load_variables(path)
    joblib.dump({other.name: np.zeros(3)}, path)
    with pytest.raises(errors.UsageError, match='shape'):
      tf_util.load_variables(path, [other])
    (tmp_path / 'bad').write_bytes(b'nonsense')
    with pytest.raises(errors.UsageError, match='Cannot load'):
      tf_util.load_variables(str(tmp_path / 'bad'))
