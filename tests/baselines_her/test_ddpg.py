"""The agent against recorded numbers, and in files."""

import json
import pickle

import numpy as np
import pytest

from agents.run import mpi as mpi_lib
from agents.tools.tf1 import tf
from baselines_her import ddpg, demonstrations, mpi, util
from tests import golden, processes
from tests.baselines_her import toy

FILES = ['ddpg_plain', 'ddpg_bc', 'ddpg_bc_qfilter', 'ddpg_relative_maxu']


def adam_tolerance(gradient, step, rate):
  """How far float32 noise of a gradient moves weights in one step of Adam.

  A step is about rate g / (|g| + e) with a tiny e, so entries near e turn
  noise into visible changes; exact zeros do not.
  """
  size = np.abs(gradient.astype(np.float64))
  edge = 1e-8 / np.sqrt(1 - 0.999 ** (step + 1))
  noise = 2e-7 * size.max()
  return np.where(size > 0, rate * noise * edge / (size + edge) ** 2, 0.0)


@pytest.mark.parametrize('name', FILES)
def test_variables(name):
  """Names in order of creation; target networks equal, statistics neutral."""
  data = toy.load(name)
  with toy.session() as sess:
    toy.make_policy(data)
    assert [x.name for x in tf.global_variables()] == list(data['var_names'])
    assert not [x for x in tf.trainable_variables() if '_stats/' in x.name]
    sess.run([x.initializer for x in tf.global_variables()])
    for key, value in toy.values(sess).items():
      if key.endswith('kernel:0'):
        bound = np.sqrt(6 / sum(value.shape))
        assert 0.5 * bound < np.abs(value).max() <= bound
      else:
        one = key.endswith(('count:0', 'std:0'))
        np.testing.assert_array_equal(value, np.full(value.shape, float(one)))


@pytest.mark.parametrize('name', FILES)
def test_acting(name):
  """Actions, values, and the random numbers that they take."""
  data = toy.load(name)
  with toy.session():
    policy = toy.make_policy(data)
    count = sum(key.endswith('_meta') for key in data if key[:3] == 'act')
    assert count == 5
    for index in range(count):
      case = toy.group(data, f'act{index}_')
      _, noise, random, with_q, target, seed = case['meta']
      np.random.seed(int(seed))
      result = policy.get_actions(
        case['o'],
        case['ag'],
        case['g'],
        noise_eps=float(noise),
        random_eps=float(random),
        use_target_net=bool(target),
        compute_Q=bool(with_q),
      )
      np.testing.assert_array_equal(
        np.random.uniform(size=2), case['next_uniform']
      )
      u, Q = result if with_q else (result, None)
      golden.assert_close(u, case['u'])
      if with_q:
        golden.assert_close(Q, case['Q'])


@pytest.mark.parametrize('name', FILES)
def test_updates(name):
  """Losses, gradients and weights of three updates, then target networks."""
  data = toy.load(name)
  hyper = json.loads(str(data['hyper']))
  allowed = {'Q': 1e-6, 'pi': 1e-6}
  with toy.session() as sess:
    policy = toy.make_policy(data)
    for step in range(3):
      case = toy.group(data, f'step{step}_')
      batch = [data[f'batch{step}_{key}'] for key in data['stage_keys']]
      policy.stage_batch(batch)
      fetches = {
        'Q_loss': policy.Q_loss_tf,
        'pi_loss': policy.pi_loss_tf,
        'main_Q_pi': policy.main.Q_pi_tf,
        'main_Q': policy.main.Q_tf,
        'main_pi': policy.main.pi_tf,
        'target_Q_pi': policy.target.Q_pi_tf,
        'target_pi': policy.target.pi_tf,
        'Q_grad': policy.Q_grad_tf,
        'pi_grad': policy.pi_grad_tf,
      }
      if hyper['bc_loss']:
        fetches['cloning_loss'] = policy.cloning_loss_tf
      for key, value in sess.run(fetches).items():
        floor = 1e-6 if key.endswith('_grad') else 0
        golden.assert_close(value, case[key], floor=floor, name=key)
      policy.stage_batch(batch)
      loss, Q_pi = policy.train(stage=False)
      golden.assert_close(loss, case['Q_loss'])
      golden.assert_close(Q_pi, case['main_Q_pi'])
      for part in allowed:
        allowed[part] = allowed[part] + adam_tolerance(
          case[f'{part}_grad'], step, hyper[f'{part}_lr']
        )
        wanted = case[f'main_{part}_flat']
        error = np.abs(toy.flat(sess, f'ddpg/main/{part}/') - wanted)
        assert (error <= allowed[part] + 1e-5 * np.abs(wanted)).all()
      if step == 0:
        assert policy.Q_adam.t == 1
        golden.assert_close(policy.Q_adam.m, data['adam_Q_m0'])
        golden.assert_close(policy.Q_adam.v, data['adam_Q_v0'])
    for count in (1, 2):
      policy.update_target_net()
      wanted = toy.group(data, f'w_polyak{count}.')
      assert wanted
      for key, value in toy.values(sess).items():
        if toy.key_of(key) in wanted:
          golden.assert_close(
            value, wanted[toy.key_of(key)], rtol=1e-4, atol=1e-5, name=key
          )


@pytest.mark.parametrize('name', FILES)
def test_store_and_sample(name, tmp_path):
  """Statistics after storing, and a batch with demonstrations at its end."""
  data = toy.load(name)
  hyper = json.loads(str(data['hyper']))
  with toy.session() as sess:
    policy = toy.make_policy(data)
    sess.run(
      [x.initializer for x in tf.global_variables() if '_stats/' in x.name]
    )
    np.random.seed(int(data['store_seed']))
    workers = hyper['rollout_batch_size']
    for start in range(0, len(data['store_o']), workers):
      policy.store_episode(
        {
          key: data['store_' + key][start : start + workers].copy()
          for key in toy.EPISODE_KEYS
        }
      )
    for key, value in toy.values(sess).items():
      if '_stats/' in key:
        _, part, kind = key.split(':')[0].split('/')
        golden.assert_close(value, data[f'store_{part[0]}_{kind}'])
    names, logs = zip(*policy.logs('p'))
    assert names == tuple(
      f'p/stats_{x}/{y}' for x in 'og' for y in ('mean', 'std')
    )
    golden.assert_close(np.array(logs, float), data['store_logs'])
    if 'demo_o' in data:
      path = write_demonstrations(tmp_path / 'demo.npz', data)
      policy.init_demo_buffer(path, update_stats=False)
    np.random.seed(int(data['sample_batch_seed']))
    batch = policy.sample_batch()
    assert len(batch) == len(data['stage_keys'])
    for key, value in zip(data['stage_keys'], batch):
      np.testing.assert_allclose(
        value, data[f'sample_batch_{key}'], 1e-6, 1e-7, err_msg=key
      )


def write_demonstrations(path, data):
  """Recorded demonstrations as a file."""
  episodes, horizon = data['demo_o'].shape[:2]
  obs = [
    [
      {
        'observation': data['demo_o'][e, t],
        'achieved_goal': data['demo_ag'][e, t],
        'desired_goal': data['demo_g'][e, min(t, horizon - 2)],
      }
      for t in range(horizon)
    ]
    for e in range(episodes)
  ]
  info = [
    [{'is_success': x[0]} for x in episode]
    for episode in data['demo_info_is_success']
  ]
  demonstrations.save(str(path), obs, data['demo_u'], info)
  return str(path)


def fill(policy, data):
  np.random.seed(3)
  for index in range(len(data['store_o'])):
    policy.buffer.store_episode(
      {k: data['store_' + k][index : index + 1] for k in toy.EPISODE_KEYS}
    )


@pytest.mark.parametrize(
  'name',
  ['ddpg_plain', pytest.param('ddpg_relative_maxu', marks=pytest.mark.slow)],
)
def test_many_updates_in_one_run(name):
  """The loop in the graph computes what single updates do, to the bit."""
  data = toy.load(name)
  results = []
  for many in (False, True):
    with tf.Graph().as_default(), toy.session() as sess:
      policy = toy.make_policy(data)
      fill(policy, data)
      if many:
        losses = policy.train_many(12)
      else:
        losses = [policy.train()[0] for _ in range(12)]
      results.append((np.array(losses), toy.flat(sess, 'ddpg/')))
      assert policy.Q_adam.t == policy.pi_adam.t == 12
  np.testing.assert_array_equal(results[0][0], results[1][0])
  np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize('name', ['ddpg_plain', 'ddpg_relative_maxu'])
def test_acting_with_fixed_weights(name):
  """In NumPy as in the graph, with the same random numbers."""
  data = toy.load(name)
  with toy.session():
    policy = toy.make_policy(data)
    for index in range(5):
      case = toy.group(data, f'act{index}_')
      _, noise, random, with_q, target, seed = case['meta']
      np.random.seed(int(seed))
      with policy.fixed_weights(bool(target)):
        result = policy.get_actions(
          *(case[key] for key in ('o', 'ag', 'g')),
          noise_eps=float(noise),
          random_eps=float(random),
          use_target_net=bool(target),
          compute_Q=bool(with_q),
        )
      u, Q = result if with_q else (result, None)
      golden.assert_close(u, case['u'])
      if with_q:
        golden.assert_close(Q, case['Q'])
    # Afterwards, new weights count again.
    before = policy.get_actions(*(case[key] for key in ('o', 'ag', 'g')))
    for variable in tf.trainable_variables():
      variable.load(np.zeros(variable.shape), policy.sess)
    after = policy.get_actions(*(case[key] for key in ('o', 'ag', 'g')))
    assert before.any() and not after.any()


class OtherRank(mpi_lib.SingleComm):
  """Second rank, whose numbers may differ from those of the first one."""

  def __init__(self, difference):
    self.difference = difference

  def Get_rank(self):
    return 1

  def Get_size(self):
    return 2

  def Bcast(self, array, root=0):
    array += self.difference

  def allgather(self, value):
    return [self.difference or value, value]


def test_ranks_that_differ_are_noticed():
  """Not by an assert, which python -O leaves out."""
  with toy.session() as sess:
    weight = tf.get_variable('weight', [3], use_resource=True)
    sess.run(weight.initializer)
    mpi.MpiAdam([weight], comm=OtherRank(0)).check_synced()
    with pytest.raises(RuntimeError, match='weights of rank 1 of 2 differ'):
      mpi.MpiAdam([weight], comm=OtherRank(1)).check_synced()
  mpi.check_seeds(OtherRank(1))
  with pytest.raises(RuntimeError, match='same random numbers'):
    mpi.check_seeds(OtherRank(0))


@pytest.mark.slow
def test_pickles_act_the_same(tmp_path):
  """Also the second one, also beside the agent, also pickled again."""
  data = toy.load('ddpg_plain')
  obs = [data[f'act0_{key}'] for key in ('o', 'ag', 'g')]
  with toy.session() as sess:
    policy = toy.make_policy(data)
    before = toy.flat(sess, 'ddpg/')
    wanted = policy.get_actions(*obs)
    content = pickle.dumps(policy)
    first = pickle.loads(content)
    second = pickle.loads(pickle.dumps(first))
    for other in (first, second):
      np.testing.assert_array_equal(other.get_actions(*obs), wanted)
    np.testing.assert_array_equal(toy.flat(sess, 'ddpg/'), before)
    state = policy.__getstate__()
  assert 'sample_transitions' not in state and 'buffer' not in state
  assert len(state['tf']) == len(data['var_names'])
  (tmp_path / 'policy.pkl').write_bytes(content)
  np.savez(tmp_path / 'obs.npz', *obs)
  code = (
    'import pickle, sys, numpy as np\n'
    'policy = pickle.load(open(sys.argv[1], "rb"))\n'
    'obs = np.load(sys.argv[2])\n'
    'u = policy.get_actions(*[obs[x] for x in obs.files])\n'
    'print(repr(u.tolist()))\n'
  )
  output = processes.run_python(
    '-c', code, str(tmp_path / 'policy.pkl'), str(tmp_path / 'obs.npz')
  )
  np.testing.assert_array_equal(np.array(eval(output), np.float32), wanted)


def test_small_batches_without_demonstrations():
  """The number of demonstrations does not matter without them."""
  data = toy.load('ddpg_plain')
  with toy.session():
    policy = toy.make_policy(data, batch_size=4, demo_batch_size=128)
    fill(policy, data)
    assert np.isfinite(policy.train()[0])
    assert policy.demo_buffer is None


def test_arguments_are_attributes():
  """All of them, as subclasses of the original's agent expect."""
  data = toy.load('ddpg_plain')
  with toy.session():
    policy = toy.make_policy(data, use_mpi=True)
  assert policy.use_mpi is True and policy.reuse is False
  assert policy.subtract_goals is util.simple_goal_subtract
  assert policy.sample_transitions is policy.buffer.sample_transitions
  assert policy.input_dims['o'] == policy.dimo
  assert policy.info == {} and policy.batch_size == policy.settings.batch_size


def test_ready_buffer():
  """The pipeline brings its own replay."""
  data = toy.load('ddpg_plain')
  with toy.session():
    first = toy.make_policy(data)
    second = ddpg.DDPG(first.settings, first.input_dims, buffer=first.buffer)
    assert second.buffer is first.buffer
    assert second.sess is not first.sess
