"""Numbers of HER, by a clone of openai/baselines."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from scripts import machine
from tests.baselines_her import toy
from tests.originals import her_original
from tests.originals.data import Results, below, read, read_json


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  return 'her', record(her_original.prepare(clone), clone, out)


def record(tf: Any, clone: str, out: str) -> Results:
  """Yield the results of all files, each from a graph of its own."""
  from baselines import logger
  from baselines.common import tf_util

  yield 'mpi_2ranks.npz', _record_ranks(clone, out)
  with logger.scoped_configure(out, []):
    for name, function in _FILES.items():
      with tf.Graph().as_default(), tf_util.single_threaded_session() as sess:
        found = function(tf, sess)
      yield name if '.' in name else f'{name}.npz', found


def _record_sampler(tf, sess):
  from baselines.her import her_sampler

  data, found = read('her', 'her_sampler'), {}
  rewards = {'sparse': toy.sparse_reward, 'info': toy.info_reward}
  for case in (f'case{x}_' for x in range(data['n_cases'])):
    seed, replay_k, _, _, batch = (int(x) for x in data[f'{case}meta'])
    episodes = below(data, f'{case}in_')
    for key in ('o', 'ag'):
      episodes[f'{key}_2'] = episodes[key][:, 1:]
    sample = her_sampler.make_sample_her_transitions(
      str(data[f'{case}strategy']),
      replay_k,
      rewards[str(data[f'{case}reward'])],
    )
    np.random.seed(seed)
    for key, value in sample(episodes, batch).items():
      found[f'{case}out_{key}'] = value
    found[f'{case}next_uniform'] = np.random.uniform(size=4)
  return found


def _record_replay(tf, sess):
  from baselines.her import her_sampler, replay_buffer

  data, found = read('her', 'replay_buffer'), {}
  sample = her_sampler.make_sample_her_transitions(
    'future', 4, toy.sparse_reward
  )
  for case in (f'case{x}_' for x in range(data['n_cases'])):
    size, horizon, seed, _ = (int(x) for x in data[f'{case}meta'])
    episodes = below(data, f'{case}in_')
    shapes = {k: v.shape[1:] for k, v in episodes.items()}
    buffer = replay_buffer.ReplayBuffer(shapes, size, horizon, sample)
    for array in buffer.buffers.values():
      array[...] = -99
    np.random.seed(seed)
    start, counts = 0, []
    for count in data[f'{case}incs']:
      part = {k: v[start : start + count] for k, v in episodes.items()}
      buffer.store_episode(part)
      start += count
      counts.append((buffer.current_size, buffer.n_transitions_stored))
    for key, value in buffer.sample(12).items():
      found[f'{case}sample_{key}'] = value
    for key in episodes:
      found[f'{case}buf_{key}'] = buffer.buffers[key]
    names = 'current_size_episodes', 'n_transitions_stored'
    for key, values in zip(names, zip(*counts)):
      found[f'{case}{key}'] = values
  return found


def _record_normalizer(tf, sess):
  from baselines.her import normalizer

  data, found = read('her', 'normalizer'), {}
  for case in ('case0_', 'case1_'):
    size, eps, clip = data[f'{case}meta']
    with tf.variable_scope(case):
      stats = normalizer.Normalizer(
        int(size), float(eps), float(clip), sess=sess
      )
    sess.run(tf.global_variables_initializer())
    probe = tf.constant(data[f'{case}probe'], tf.float32)
    found[f'{case}normalized_before'] = sess.run(stats.normalize(probe))
    for index in range(data[f'{case}n_updates']):
      stats.update(data[f'{case}update{index}'])
      if data[f'{case}recomputed{index}']:
        stats.recompute_stats()
      for key, part in (
        ('sum', 'sum_tf'),
        ('sumsq', 'sumsq_tf'),
        ('count', 'count_tf'),
        ('mean', 'mean'),
        ('std', 'std'),
      ):
        found[f'{case}{key}{index}'] = sess.run(getattr(stats, part))
    found[f'{case}normalized'] = sess.run(stats.normalize(probe))
    found[f'{case}normalized_clip1'] = sess.run(stats.normalize(probe, 1))
    found[f'{case}denormalized'] = sess.run(stats.denormalize(probe))
  return found


def _record_adam(tf, sess):
  from baselines.common import mpi_adam

  data, found = read('her', 'mpi_adam'), {}
  for scale in (0, 1):
    start = data[f'theta_scale{scale}'][0]
    a, b = (tf.Variable(x) for x in (start[:3], start[3:].reshape(2, 5)))
    loss = tf.reduce_sum(tf.square(a)) + tf.reduce_sum(tf.sin(b))
    flat = tf.concat(
      [tf.reshape(x, [-1]) for x in tf.gradients(loss, [a, b])], 0
    )
    sess.run(tf.global_variables_initializer())
    adam = mpi_adam.MpiAdam([a, b], scale_grad_by_procs=bool(scale))
    rows = [adam.getflat()], [], []
    for _ in range(len(data[f'loss_scale{scale}'])):
      value, gradient = sess.run([loss, flat])
      adam.update(gradient, float(data['lr']))
      for kept, new in zip(rows, (adam.getflat(), value, gradient)):
        kept.append(new)
    for key, values in zip(('theta', 'loss', 'grad'), rows):
      found[f'{key}_scale{scale}'] = values
    for key in ('m', 'v'):
      found[f'{key}_scale{scale}'] = getattr(adam, key)
  return found


def _record_helpers(tf, sess):
  from baselines.common import mpi_moments
  from baselines.her import her, util

  data = read('her', 'util')
  batch = util.convert_episode_to_batch_major(below(data, 'in_'))
  found = {f'out_{key}': value for key, value in batch.items()}
  count = util.transitions_in_episode_batch(batch)
  found['transitions_in_episode_batch'] = count
  gradients = [tf.constant(data[f'grad{index}']) for index in range(3)]
  found['flat_grads'] = sess.run(util.flatten_grads(gradients, gradients))
  for index in range(3):
    case = f'mom{index}_'
    moments = mpi_moments.mpi_moments(data[f'{case}x'], data[f'{case}axis'])
    for key, value in zip(('mean', 'std', 'count'), moments):
      found[case + key] = value
  average = her.mpi_average
  found['mpi_average_out'] = [average(x) for x in data['mpi_average_in']]
  listed = data['mpi_average_list_in'].tolist()
  found['mpi_average_list_out'] = average(listed)
  found['mpi_average_zero_list_out'] = average([0.0, 0.0])
  return found


def _record_networks(tf, sess):
  from baselines.her import actor_critic, normalizer

  data = read('her', 'actor_critic')
  sizes = {x: data[f'in_{x}'].shape[1] for x in 'ogu'}
  inputs = {x: tf.placeholder(tf.float32, [None, n]) for x, n in sizes.items()}
  with tf.variable_scope('t'):
    stats = {}
    for key in 'og':
      with tf.variable_scope(f'{key}_stats'):
        stats[key] = normalizer.Normalizer(sizes[key], 0.01, 5, sess)
    with tf.variable_scope('main'):
      net = actor_critic.ActorCritic(
        inputs,
        *sizes.values(),
        max_u=float(data['max_u']),
        o_stats=stats['o'],
        g_stats=stats['g'],
        hidden=32,
        layers=3,
      )
  _load(tf, sess, below(data, 'w.'))
  tensors = {x: getattr(net, f'{x}_tf') for x in ('pi', 'Q_pi', 'Q')}
  weights = tf.trainable_variables('t/main/pi/')
  gradients = tf.gradients(tf.reduce_mean(net.Q_pi_tf), weights)
  for index, gradient in enumerate(gradients):
    tensors[f'dQpi_dpi{index}'] = gradient
  tensors['input_Q'] = net._input_Q
  found = sess.run(tensors, {inputs[x]: data[f'in_{x}'] for x in 'ogu'})
  names = [x.name for x in tf.trainable_variables()]
  return {**found, 'trainable_names': names}


def _load(tf, sess, values):
  """Set the variables that have a recorded value."""
  for variable in tf.global_variables():
    key = toy.key_of(variable.name)
    if key in values:
      variable.load(values[key], sess)


def _record_agent(name, tf, sess):
  """Act, update three times, store and sample, with the weights of a file."""
  data = read('her', name)
  agent = _make_agent(data)
  found = {'var_names': [x.name for x in tf.global_variables()]}
  found['stage_keys'] = list(agent.stage_shapes)
  _load(tf, sess, below(data, 'w0.'))
  for index in range(5):
    case = f'act{index}_'
    for key, value in _act(agent, below(data, case)).items():
      found[case + key] = value
  for step in range(3):
    for key, value in _update(agent, data, step).items():
      found[f'step{step}_{key}'] = value
    if not step:
      found.update(adam_Q_m0=agent.Q_adam.m, adam_Q_v0=agent.Q_adam.v)
  for count in (1, 2):
    agent.update_target_net()
    for variable in agent.target_vars:
      key = f'w_polyak{count}.{toy.key_of(variable.name)}'
      found[key] = sess.run(variable)
  found.update(_store(tf, sess, agent, data))
  return {key: value for key, value in found.items() if key in data}


def _make_agent(data):
  from baselines.her import ddpg, her_sampler
  from baselines.her.experiment import config

  hyper = json.loads(str(data['hyper']))
  hyper['clip_return'] = float(hyper['clip_return'])
  return ddpg.DDPG(
    hyper.pop('dims'),
    buffer_size=2000,
    network_class='baselines.her.actor_critic:ActorCritic',
    scope='ddpg',
    subtract_goals=config.simple_goal_subtract,
    num_demo=len(data.get('demo_o', [0])),
    sample_transitions=her_sampler.make_sample_her_transitions(
      'future', 4, toy.sparse_reward
    ),
    **hyper,
  )


def _act(agent, case):
  _, noise, random, with_q, target, seed = case['meta'].tolist()
  np.random.seed(int(seed))
  result = agent.get_actions(
    *(case[key] for key in ('o', 'ag', 'g')),
    noise_eps=noise,
    random_eps=random,
    use_target_net=bool(target),
    compute_Q=bool(with_q),
  )
  values = dict(zip('uQ', result)) if with_q else {'u': result}
  return {**values, 'next_uniform': np.random.uniform(size=2)}


def _update(agent, data, step):
  batch = [data[f'batch{step}_{key}'] for key in agent.stage_shapes]
  names = 'Q_loss', 'pi_loss', 'Q_grad', 'pi_grad', 'cloning_loss'
  tensors = {
    name: getattr(agent, f'{name}_tf')
    for name in names
    if hasattr(agent, f'{name}_tf')
  }
  for net, keys in (('main', ('Q_pi', 'Q', 'pi')), ('target', ('Q_pi', 'pi'))):
    for key in keys:
      tensors[f'{net}_{key}'] = getattr(getattr(agent, net), f'{key}_tf')
  agent.stage_batch(batch)
  found = agent.sess.run(tensors)
  agent.stage_batch(batch)
  agent.train(stage=False)
  found['main_Q_flat'] = agent.Q_adam.getflat()
  found['main_pi_flat'] = agent.pi_adam.getflat()
  return found


def _store(tf, sess, agent, data):
  """Store episodes and demonstrations, and sample a batch."""
  stats = [x for x in tf.global_variables() if '_stats/' in x.name]
  sess.run(tf.variables_initializer(stats))
  np.random.seed(data['store_seed'])
  size = agent.rollout_batch_size
  for start in range(0, len(data['store_o']), size):
    agent.store_episode(
      {
        key: data[f'store_{key}'][start : start + size].copy()
        for key in toy.EPISODE_KEYS
      }
    )
  found = {'store_logs': [value for _, value in agent.logs()]}
  for variable in stats:
    _, part, kind = variable.op.name.split('/')
    found[f'store_{part[0]}_{kind}'] = sess.run(variable)
  if 'demo_o' in data:
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, 'demos.npz')
      _write_demos(path, below(data, 'demo_'))
      agent.init_demo_buffer(path, update_stats=False)
  np.random.seed(data['sample_batch_seed'])
  for key, value in zip(agent.stage_shapes, agent.sample_batch()):
    found[f'sample_batch_{key}'] = value
  return found


def _write_demos(path, demos):
  """Write demonstrations in the format of the original."""
  last = demos['g'].shape[1] - 1
  obs = [
    [
      {
        'observation': demos['o'][episode, time],
        'achieved_goal': demos['ag'][episode, time],
        'desired_goal': demos['g'][episode, min(time, last)],
      }
      for time in range(last + 2)
    ]
    for episode in range(len(demos['o']))
  ]
  info = [
    [{'is_success': x[0]} for x in episode]
    for episode in demos['info_is_success']
  ]
  np.savez(path, obs=obs, acs=demos['u'], info=info)


def _define_toys(steps, seeds):
  """Return a vector of toy environments with the spaces of the original."""
  import gym
  from baselines.common.vec_env import dummy_vec_env

  class Toy(toy.ToyPoint):
    def __init__(self, *args):
      super().__init__(*args)
      self.observation_space = gym.spaces.Dict(
        {
          key: gym.spaces.Box(-np.inf, np.inf, x.shape, np.float32)
          for key, x in self.observation_space.spaces.items()
        }
      )
      self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def compute_reward(self, achieved_goal, desired_goal, info):
      return super().compute_reward(achieved_goal, desired_goal, info)

  # Made again by the original, to find its sizes.
  gym.make = lambda name: Toy(steps)
  return dummy_vec_env.DummyVecEnv(
    [functools.partial(Toy, steps, x) for x in seeds]
  )


def _record_training(name, tf, sess):
  """Train on the toy task."""
  import joblib
  from baselines import logger
  from baselines.her import her, rollout
  from baselines.her.experiment import config

  data, rollouts = read('her', name), []
  meta = json.loads(str(data['meta']))
  generate = rollout.RolloutWorker.generate_rollouts

  def note(worker):
    episode = generate(worker)
    value = worker.Q_history[-1] if worker.compute_Q else np.nan
    rollouts.append(
      (dict(episode), worker.exploit, worker.success_history[-1], value)
    )
    return episode

  env = _define_toys(meta['max_episode_steps'], meta['env_seeds'])
  weights = {x: data[f'w_load.{toy.key_of(x)}'] for x in data['var_names']}
  with (
    tempfile.TemporaryDirectory() as folder,
    logger.scoped_configure(folder, ['json']),
    mock.patch.object(rollout.RolloutWorker, 'generate_rollouts', note),
    mock.patch.dict(config.DEFAULT_PARAMS),
  ):
    path = os.path.join(folder, 'weights')
    joblib.dump(weights, path)
    agent = her.learn(
      network='mlp',
      env=env,
      total_timesteps=meta['total_timesteps'],
      seed=meta['seed'],
      override_params=meta['override_params'],
      load_path=path,
      **meta['learn_kwargs'],
    )
    with open(os.path.join(folder, 'progress.json')) as file_:
      rows = [json.loads(line) for line in file_]
  found = {'next_uniform': np.random.uniform(size=3)}
  found['logs_keys'] = keys = sorted(rows[0])
  found['logs'] = [[row[key] for key in keys] for row in rows]
  meta.update(
    n_epochs=len(rows),
    resets_per_env=[x.resets for x in env.envs],
    **_describe(agent),
  )
  return {
    **found,
    **_name_training(tf, sess, agent, rollouts),
    'meta': json.dumps(meta),
  }


def _describe(agent):
  """Return the effective settings and the sizes of the replay."""
  found = {
    'buffer_current_size_episodes': agent.buffer.current_size,
    'n_transitions_stored': agent.buffer.n_transitions_stored,
    'buffer_episodes': agent.buffer.size,
  }
  for key in ('hidden', 'batch_size', 'gamma', 'clip_return'):
    value = getattr(agent, key)
    found[f'effective_{key}'] = 'inf' if value == np.inf else value
  return found


def _name_training(tf, sess, agent, rollouts):
  """Return rollouts, replay and weights by their keys."""
  found = {}
  episodes, *columns = zip(*rollouts)
  names = 'episode_is_eval', 'episode_success', 'episode_Q'
  found.update(zip(names, columns))
  buffer = agent.buffer
  for key in toy.EPISODE_KEYS:
    for index in (0, 1, len(episodes) - 1):
      value = np.ascontiguousarray(episodes[index][key])
      found[f'ep{index}_{key}'] = value
    found[f'buffer_{key}'] = buffer.buffers[key][: buffer.current_size]
  found['var_names'] = [x.name for x in tf.global_variables()]
  for variable in tf.global_variables():
    key = f'w_final.{toy.key_of(variable.name)}'
    found[key] = sess.run(variable)
  return found


def _record_texts(tf, sess):
  """Read command lines, count epochs, and write logs."""
  data = read_json('her', 'cmdline_logger')
  for entry in data['cmdline']:
    entry.update(_parse(entry['argv']))
  for case in data['n_epochs']:
    case['n_epochs'] = _count_epochs(**case)
  data['logger']['files'] = _log(data['logger'])
  return data


def _parse(argv):
  from baselines import run
  from baselines.common import cmd_util

  known, unknown = cmd_util.common_arg_parser().parse_known_args(argv)
  found = {
    'known': vars(known),
    'unknown': unknown,
    'extra': run.parse_cmdline_kwargs(unknown),
  }
  return json.loads(json.dumps(found))


def _count_epochs(total_timesteps, n_cycles, T, num_envs, n_epochs):
  """Return the number of epochs that a training would have."""
  from baselines.her import her
  from baselines.her.experiment import config

  with (
    mock.patch.object(her, 'train') as train,
    mock.patch.object(config, 'configure_ddpg'),
    mock.patch.dict(config.DEFAULT_PARAMS),
  ):
    her.learn(
      network='mlp',
      env=_define_toys(T, range(num_envs)),
      total_timesteps=total_timesteps,
      override_params={'n_cycles': n_cycles},
    )
  return train.call_args.kwargs['n_epochs']


def _log(data):
  """Return the content of the files of recorded calls."""
  from baselines import logger

  found = {}
  with tempfile.TemporaryDirectory() as folder:
    with logger.scoped_configure(folder, ['log', 'csv', 'json']):
      for kind, *args in data['sequence']:
        if kind == 'kv':
          logger.logkv(*args)
        elif kind == 'kv_mean':
          for value in args[1]:
            logger.logkv_mean(args[0], value)
        elif kind == 'dump':
          logger.dumpkvs()
        else:
          getattr(logger, kind)(*args[0])
    for name in data['files']:
      with open(os.path.join(folder, name)) as file_:
        found[name] = file_.read().replace(folder, '<LOGDIR>')
  return found


def _record_ranks(clone, out):
  """Return what two processes compute together."""
  path = os.path.join(out, 'ranks.npz')
  code = (
    f'import sys; sys.path = {sys.path!r}; '
    f'from {__name__} import run_rank; run_rank({clone!r}, {path!r})'
  )
  words = 'mpirun --oversubscribe --bind-to none -n 2 python -W ignore -c'
  command = machine.resolve([*words.split(), code])
  environ = machine.environ(OMPI_MCA_mpi_yield_when_idle='1')
  subprocess.run(command, check=True, env=environ)
  with np.load(path) as data:
    return dict(data)


def run_rank(clone: str, path: str) -> None:
  """Compute in one of two processes; the first one writes the results."""
  tf = her_original.prepare(clone)
  from baselines.common import mpi_adam, mpi_moments, tf_util
  from baselines.her import her, normalizer
  from mpi4py import MPI

  rank = MPI.COMM_WORLD.Get_rank()
  data, found = read('her', 'mpi_2ranks'), {}
  moments = mpi_moments.mpi_moments(data[f'mom_x_rank{rank}'])
  found.update(zip(('mom_mean', 'mom_std', 'mom_count'), moments))
  found['mpi_average_out'] = her.mpi_average(data['mpi_average_in'][rank])
  sess = tf_util.make_session(num_cpu=1, make_default=True)
  stats = normalizer.Normalizer(3, 0.01, 5, sess)
  names = 'sum', 'sumsq', 'count', 'mean', 'std'
  variables = dict(zip(names, tf.global_variables()))
  sess.run(tf.global_variables_initializer())
  stats.update(data[f'norm_v_rank{rank}'])
  stats.recompute_stats()
  for key, value in sess.run(variables).items():
    found[f'norm_{key}'] = value
  for scale in (0, 1):
    variable = tf.Variable(data[f'adam_init_rank{rank}'])
    sess.run(variable.initializer)
    adam = mpi_adam.MpiAdam([variable], scale_grad_by_procs=bool(scale))
    adam.sync()
    rows = [adam.getflat()]
    for gradient in data[f'adam_grads_rank{rank}']:
      adam.update(gradient, float(data['lr']))
      rows.append(adam.getflat())
    found[f'adam_theta_scale{scale}'] = rows
  if not rank:
    np.savez(path, **found)


_FILES: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
  'her_sampler': _record_sampler,
  'replay_buffer': _record_replay,
  'normalizer': _record_normalizer,
  'mpi_adam': _record_adam,
  'util': _record_helpers,
  'actor_critic': _record_networks,
  **{
    f'ddpg_{x}': functools.partial(_record_agent, f'ddpg_{x}')
    for x in ('plain', 'bc', 'bc_qfilter', 'relative_maxu')
  },
  **{
    f'learn_{x}': functools.partial(_record_training, f'learn_{x}')
    for x in ('1env', '3env_relative', 'kwargs')
  },
  'cmdline_logger.json': _record_texts,
}
