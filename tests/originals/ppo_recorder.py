"""Numbers of PPO, by the copy of its original in PyBullet."""

import ast
import functools
import itertools
import os
import tempfile
from collections.abc import Callable
from typing import Any
from unittest import mock

import gym
import numpy as np

from tests import scripted_envs
from tests.originals import planet_original, ppo_original
from tests.originals.data import Results, below, evaluate, read, session

_MEMORY = 'observ', 'action', 'mean', 'logstd', 'reward'


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  os.environ['TF_USE_LEGACY_KERAS'] = '1'  # Recurrent cells.
  ppo_original.prepare(clone)
  import tensorflow.compat.v1 as tf

  tf.contrib.rnn.GRUBlockCell = planet_original._define_gru(tf)
  return 'ppo', record(tf)


def record(tf: Any) -> Results:
  """Yield the results of all files, each from a graph of its own."""
  for name, function in _FILES.items():
    with tf.Graph().as_default():
      found = function(tf)
    yield f'{name}.npz', found


def _record_returns(tf):
  from pybullet_envs.agents.ppo import utility

  data = read('ppo', 'returns')
  reward, value, length = (
    tf.constant(data[x]) for x in ('reward', 'value', 'length')
  )
  discount, lambda_ = float(data['discount']), float(data['lambda_'])
  end = value, length, discount
  found = {
    'discounted_return': utility.discounted_return(reward, length, discount),
    'lambda_return': utility.lambda_return(reward, *end, lambda_),
    'lambda_return_lambda1': utility.lambda_return(reward, *end, 1.0),
    'lambda_advantage': utility.lambda_advantage(reward, *end),
  }
  return evaluate(tf, found)


def _record_divergences(tf):
  from pybullet_envs.agents.ppo import utility

  data = read('ppo', 'diag_normal')
  first, second = (
    (tf.constant(data[f'mean{x}']), tf.constant(data[f'logstd{x}']))
    for x in (0, 1)
  )
  flat = [x[:, 0] for x in first]
  found = {
    'kl_0_1': utility.diag_normal_kl(*first, *second),
    'kl_1_0': utility.diag_normal_kl(*second, *first),
    'kl_0_0': utility.diag_normal_kl(*first, *first),
    'logpdf': utility.diag_normal_logpdf(*first, tf.constant(data['loc'])),
    'entropy_rank3_original': utility.diag_normal_entropy(*first),
    'entropy_rank2': utility.diag_normal_entropy(*flat),
  }
  return evaluate(tf, found)


def _record_mean(tf):
  from pybullet_envs.agents import tools

  data, found = read('ppo', 'streaming_mean'), {}
  mean, vectors = (tools.StreamingMean(x, tf.float32) for x in ((), (3,)))
  with session(tf) as sess:
    for index in range(3):
      sess.run(mean.submit(tf.constant(data[f'in{index}'])))
      found[f'value{index}'], found[f'count{index}'] = sess.run(
        [mean.value, mean.count]
      )
    sess.run(mean.submit(tf.constant(data['in3'])))
    found['clear'] = sess.run(mean.clear())
    found['value_after_clear'], found['count_after_clear'] = sess.run(
      [mean.value, mean.count]
    )
    for key in ('vec_in0', 'vec_in1'):
      sess.run(vectors.submit(tf.constant(data[key])))
    found['vec_clear'] = sess.run(vectors.clear())
  return found


def _record_normalize(tf):
  from pybullet_envs.agents.ppo import normalize

  data, found = read('ppo', 'streaming_normalize'), {}
  for name, settings in {
    'observ': (True, True, 5),
    'reward_like': (False, True, 10),
    'center_only': (True, False, None),
  }.items():
    before = len(tf.global_variables())
    probe = tf.constant(data['probe'])
    filter_ = normalize.StreamingNormalize(probe[0], *settings)
    state = dict(
      zip(('count', 'mean', 'var_sum'), tf.global_variables()[before:])
    )
    outputs = {
      'transform': filter_.transform(probe),
      'transform_single': filter_.transform(probe[0]),
    }
    with session(tf) as sess:
      key = f'{name}/transform_before_any_update'
      found[key] = sess.run(outputs['transform'])
      updates = [x for x in data if x.startswith('update')]
      for index, key in enumerate(updates):
        sess.run(filter_.update(tf.constant(data[key])))
        for key, value in sess.run({**state, **outputs}).items():
          found[f'{name}/{key}{index}'] = value
  return found


def _record_network(name, tf):
  """Run a network; its distribution was one of tf.contrib, not the original's.

  So its densities are not recorded.
  """
  from pybullet_envs.agents import networks

  data = read('ppo', name)
  network = tf.make_template(
    'network',
    functools.partial(
      getattr(networks, name),
      _configure(data),
      int(data['action_size']),
      tf.constant(data['observations']),
    ),
  )
  length = tf.constant(data['length'])
  output = network(length)
  found = {key: getattr(output, key) for key in ('mean', 'logstd', 'value')}
  if 'initial_state' in data:
    again = network(length, tf.constant(data['initial_state']))
    found['final_state_from_zero'] = output.state
    found['mean_with_state'] = again.mean
    found['value_with_state'] = again.value
    found['final_state_with_state'] = again.state
  with session(tf) as sess:
    _load(sess, tf.trainable_variables(), below(data, 'weight_'))
    return sess.run(found)


def _configure(data, **settings):
  """Return settings of the original, with the layers and settings of a file."""
  from pybullet_envs.agents import configs, tools

  found = {**configs.default(), **settings}
  for key in ('policy_layers', 'value_layers'):
    found[key] = data[key].tolist()
  for key, value in below(data, 'config_').items():
    found[key] = value.item()
  return tools.AttrDict(found)


def _load(sess, variables, values):
  for variable, value in zip(variables, values.values(), strict=True):
    variable.load(value, sess)


def _record_memory(tf):
  from pybullet_envs.agents.ppo import memory

  data, found = read('ppo', 'episode_memory'), {}
  sizes = int(data['capacity']), int(data['max_length'])
  template = [tf.zeros(x) for x in ((2,), (3,), ())]
  episodes = memory.EpisodeMemory(template, *sizes, 'memory')
  steps = []
  for index, kind in enumerate(data['operations']):
    given = below(data, f'step{index:02d}_')
    rows = tf.constant(given['rows'])
    values = [tf.constant(v) for k, v in given.items() if k.startswith('in')]
    steps.append(
      {
        'clear': lambda values, given, rows: episodes.clear(rows),
        'append': lambda values, given, rows: episodes.append(values, rows),
        'replace': lambda values, given, rows: episodes.replace(
          values, tf.constant(given['new_length']), rows
        ),
      }[str(kind)](values, given, rows)
    )
  rows = tf.constant(data['select_rows'])
  everything, some = episodes.data(), episodes.data(rows)
  with session(tf) as sess:
    for index, step in enumerate(steps):
      sess.run(step)
      found.update(_name_episodes(f'step{index:02d}_', sess.run(everything)))
    found.update(_name_episodes('select_', sess.run(some)))
  return found


def _name_episodes(prefix, content):
  buffers, length = content
  values = {f'{prefix}buffer{i}': x for i, x in enumerate(buffers)}
  return {**values, f'{prefix}length': length}


def _record_update(name, tf):
  """Update from the weights, statistics and memory of a file."""
  data = read('ppo', name)
  found = _update(tf, data)
  with tf.Graph().as_default():
    algorithm = _define_update(tf, data)
    advantage = tf.constant(found['normalized_advantage'])
    inputs, losses = _define_losses(tf, algorithm, advantage)
    weights = dict(zip(below(data, 'before_'), tf.trainable_variables()))
    gradients = _define_gradients(algorithm, losses, weights)
    with session(tf) as sess:
      _load_update(tf, sess, algorithm, data)
      before = sess.run({**inputs, **losses, **gradients})
      _load(sess, tf.trainable_variables(), below(found, 'after_'))
      algorithm._penalty.load(found['penalty_after'], sess)
      after = sess.run(losses)
  found.update({key: before[key] for key in (*inputs, *gradients)})
  for key in ('value_loss', 'policy_loss', 'kl_per_episode'):
    found[f'initial_{key}'] = before[key]
  for key in ('value_loss', 'policy_loss'):
    found[f'final_{key}'] = after[key]
  return {**found, 'kl_change': after['kl_change']}


def _update(tf, data):
  """Return the results of an update and its advantage."""
  from pybullet_envs.agents.ppo import utility

  algorithm = _define_update(tf, data)
  lambda_return = functools.partial(_unroll, tf, utility.lambda_return)
  with mock.patch.object(utility, 'lambda_return', lambda_return):
    summary = algorithm._training()
  weights = dict(zip(below(data, 'before_'), tf.trainable_variables()))
  (advantage,) = (
    op.outputs[0]
    for op in tf.get_default_graph().get_operations()
    if op.type == 'Print'
    and op.get_attr('message') == b'normalized advantage: '
  )
  state = {
    'penalty_after': algorithm._penalty,
    'memory_index_after': algorithm._memory_index,
    'memory_length_after': algorithm._memory._length,
    **{f'after_{key}': value for key, value in weights.items()},
  }
  with session(tf) as sess:
    _load_update(tf, sess, algorithm, data)
    before = {
      'penalty_before': algorithm._penalty,
      'normalized_advantage': advantage,
    }
    found = sess.run(before)
    found.update(_read_summary(tf, sess.run(summary)))
    return {**found, **sess.run(state)}


def _unroll(tf, function, *args):
  """Call a function with a `tf.scan` that is no loop.

  TensorFlow refuses gradients within a loop if an earlier loop depends on the
  same weights.
  """

  def scan(fn, elems, initializer, *unused):
    values = [initializer]
    for value in tf.unstack(elems):
      values.append(fn(values[-1], value))
    return tf.stack(values[1:])

  with mock.patch.object(tf, 'scan', scan):
    return function(*args)


def _define_update(tf, data):
  """Return the algorithm with the settings of a file."""
  from pybullet_envs.agents import networks, ppo, tools

  kind = 'recurrent' if data['recurrent'] else 'feed_forward'
  capacity, max_length, size = data['memory_observ'].shape
  config = _configure(
    data,
    network=getattr(networks, f'{kind}_gaussian'),
    update_every=capacity,
    max_length=max_length,
    gae_lambda=float(data['gae_lambda']),
  )
  env = tools.MockEnvironment((size,), (int(data['action_size']),), 1, 1)
  env = tools.InGraphBatchEnv(tools.BatchEnv([env], True))
  flag = tf.constant(True)
  return ppo.PPOAlgorithm(env, tf.constant(0), flag, flag, config)


def _define_losses(tf, algorithm, advantage):
  """Return what an update is computed from, and its losses."""
  from pybullet_envs.agents.ppo import utility

  (observ, action, *old, reward), length = algorithm._memory.data()
  observ = algorithm._observ_filter.transform(observ)
  reward = algorithm._reward_filter.transform(reward)
  network = algorithm._network(observ, length)
  inputs = {
    'normalized_observ': observ,
    'normalized_reward': reward,
    'initial_mean': network.mean,
    'initial_logstd': network.logstd,
    'initial_value': network.value,
    'return': utility.discounted_return(
      reward, length, algorithm._config.discount
    ),
  }
  new = network.mean, network.logstd
  kl = algorithm._mask(utility.diag_normal_kl(*old, *new), length)
  loss = algorithm._policy_loss(*new, *old, action, advantage, length)
  return inputs, {
    'value_loss': algorithm._value_loss(observ, reward, length)[0],
    'policy_loss': loss[0],
    'kl_per_episode': tf.reduce_mean(kl, 1),
    'kl_change': tf.reduce_mean(kl),
  }


def _define_gradients(algorithm, losses, weights):
  names = {x.name: key for key, x in weights.items()}
  return {
    f'grad_{loss}_{names[variable.name]}': gradient
    for loss in ('value_loss', 'policy_loss')
    for gradient, variable in algorithm._optimizer.compute_gradients(
      losses[loss]
    )
    if gradient is not None
  }


def _load_update(tf, sess, algorithm, data):
  """Set weights, statistics and a full memory."""
  _load(sess, tf.trainable_variables(), below(data, 'before_'))
  for name in ('observ', 'reward'):
    filter_ = getattr(algorithm, f'_{name}_filter')
    variables = filter_._count, filter_._mean, filter_._var_sum
    _load(sess, variables, below(data, f'{name}_filter_'))
  memory = algorithm._memory
  values = {x: data[f'memory_{x}'] for x in (*_MEMORY, 'length')}
  _load(sess, [*memory._buffers, memory._length], values)
  algorithm._memory_index.load(len(values['length']), sess)


def _read_summary(tf, summary):
  """Return the last parts of all tags, and the scalars."""
  values = tf.Summary.FromString(summary).value
  names = {x.tag.rpartition('/')[2]: x for x in values}
  found = {
    f'summary_scalar/{name}': x.simple_value
    for name, x in names.items()
    if x.WhichOneof('value') == 'simple_value'
  }
  return {**found, 'summary_tags': sorted(names)}


def _record_environment(tf):
  from pybullet_envs.agents import tools

  data = read('ppo', 'mock_environment')
  env = tools.MockEnvironment(
    *(tuple(data[f'{x}_shape']) for x in ('observ', 'action')),
    *(int(data[f'{x}_duration']) for x in ('min', 'max')),
  )
  action = np.zeros(env.action_space.shape, np.float32)
  rows = _call(env, data['calls'], [action])
  names = 'observ', 'reward', 'done'
  found = {key: np.array(x) for key, x in zip(names, zip(*rows))}
  return {**found, 'steps': env.steps, 'durations': env.durations}


def _call(env, calls, actions):
  """Return observations, rewards and ends of calls."""
  actions = itertools.cycle(actions)
  return [
    (env.reset(), np.nan, False)
    if call == 'reset'
    else env.step(next(actions))[:3]
    for call in calls
  ]


def _record_wrappers(tf):
  from pybullet_envs.agents.tools import wrappers

  # Not in this copy: CacheSpaces.
  data, found = read('ppo', 'wrappers'), {}
  for name, (wrapper, *args) in {
    'auto_reset': (wrappers.AutoReset,),
    'action_repeat_3': (wrappers.ActionRepeat, 3),
    'frame_history_stack': (wrappers.FrameHistory, [0, 1, 3], False),
    'frame_history_flat': (wrappers.FrameHistory, [0, 2], True),
    'frame_delta': (wrappers.FrameDelta,),
    'range_normalize': (wrappers.RangeNormalize,),
    'range_normalize_action_only': (wrappers.RangeNormalize, False),
    'range_normalize_observ_only': (wrappers.RangeNormalize, None, False),
    'clip_action': (wrappers.ClipAction,),
    'limit_duration_4': (wrappers.LimitDuration, 4),
    'convert_to_32_bit': (wrappers.ConvertTo32Bit,),
    'full_chain': (_wrap_all,),
    'random_start_4': (wrappers.RandomStart, 4),
  }.items():
    ends = name not in ('frame_history_stack', 'random_start_4')
    base = scripted_envs.ReplayEnv(data, data['done'] & ends)
    recorded = below(data, f'{name}/')
    if 'numpy_seed' in recorded:
      np.random.seed(recorded['numpy_seed'])
    env = wrapper(base, *args)
    observs, rewards, dones = zip(
      *_call(env, recorded['calls'], data['actions'])
    )
    values = {
      'observ': observs,
      'reward': rewards,
      'done': dones,
      'inner_actions': base.actions,
      'inner_resets': base.resets,
      'observ_dtype': str(np.asarray(observs[-1]).dtype),
      'reward_dtype': str(np.asarray(rewards[-1]).dtype),
    }
    for space in ('observation_space', 'action_space'):
      for bound in ('low', 'high'):
        values[f'{space}_{bound}'] = getattr(getattr(env, space), bound)
    found.update({f'{name}/{key}': value for key, value in values.items()})
  # Drawn without seed.
  del found['random_start_4/inner_actions']
  # Has the current frame for the oldest one in this copy; the recording is of
  # the last version of batch-ppo.
  for name in ('frame_history_stack', 'frame_history_flat'):
    del found[f'{name}/observ']
  return found


def _wrap_all(env):
  from pybullet_envs.agents.tools import wrappers

  env = wrappers.RangeNormalize(wrappers.LimitDuration(env, 5))
  return wrappers.ConvertTo32Bit(wrappers.ClipAction(env))


def _record_schedules(tf):
  data, found = read('ppo', 'loop_schedule'), {}
  for name in ('train_eval', 'not_dividing', 'resume'):
    spec = ast.literal_eval(str(data[f'{name}/spec']))
    rows = _record_schedule(tf, spec)
    for key in rows[0]:
      found[f'{name}/{key}'] = [row[key] for row in rows]
  return found


def _record_schedule(tf, spec):
  """Return a row per execution of a loop."""
  from pybullet_envs.agents import tools

  rows: list[dict[str, Any]] = []

  class Loop(tools.Loop):
    def _find_current_phase(self, global_step):
      found = phase, epoch, steps_in = super()._find_current_phase(global_step)
      row = dict(global_step=global_step, epoch=epoch, steps_in=steps_in)
      row.update(phase=self._phases.index(phase), checkpoint=0, yielded=0)
      rows.append(row)
      return found

    def _store_checkpoint(self, sess, saver, global_step):
      rows[-1]['checkpoint'] = global_step

  def note(*values):
    rows[-1].update(zip(flags, values))
    return b'summary'

  def note_summary(summary, step):
    rows[-1]['summary_step'] = step

  flags = {x: tf.placeholder(tf.bool, ()) for x in ('log', 'report', 'reset')}
  step = tf.Variable(spec['start_step'], False, dtype=tf.int32)
  summary = tf.py_func(note, [*flags.values()], tf.string)
  size = spec['batch']
  with tempfile.TemporaryDirectory() as folder, session(tf) as sess:
    loop = Loop(folder, step, **flags)
    for phase in spec['phases']:
      loop.add_phase(
        done=tf.ones(size, tf.bool),
        score=tf.ones(size),
        summary=summary,
        **phase,
      )
      loop._phases[-1].writer.add_summary = note_summary
    sess.run(tf.global_variables_initializer())
    for _ in loop.run(sess, None, spec['max_step']):
      rows[-1]['yielded'] = 1
  return rows


def _record_end_to_end(tf):
  """Replay observations and rewards, as the test does."""
  from pybullet_envs.agents import configs, ppo, tools

  from tests.agents.ppo import scripted

  # Our code enables them.
  tf.disable_resource_variables()
  data, clock, rows = read('ppo', 'end_to_end'), [0], []
  names = 'num_agents', 'update_every', 'update_epochs', 'max_length'
  config = tools.AttrDict(
    configs.default(),
    network=scripted.network,
    learning_rate=float(data['learning_rate']),
    **{key: int(data[key]) for key in names},
  )
  envs = [
    _convert(scripted.Replay(index, clock))
    for index in range(config.num_agents)
  ]
  env = tools.InGraphBatchEnv(tools.BatchEnv(envs, True))
  flags = {x: tf.placeholder(tf.bool, ()) for x in ('training', 'log', 'reset')}
  algorithm = ppo.PPOAlgorithm(
    env, tf.constant(0), flags['training'], flags['log'], config
  )
  outputs = tools.simulate(env, algorithm, flags['log'], flags['reset'])
  state = _name_state(tf, env, algorithm)
  with session(tf) as sess:
    for clock[0] in range(len(data['done'])):
      feed = {flags[key]: data[key][clock[0]] for key in flags}
      done, score, summary = sess.run(outputs, feed)
      number = len(tf.Summary.FromString(summary).value)
      row = dict(done=done, score=score, num_summary_tags=number)
      rows.append({**row, **sess.run(state)})
  return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def _convert(env):
  """Return an environment of the tests with the spaces of the original."""
  from pybullet_envs.agents import tools

  for name in ('observation_space', 'action_space'):
    shape = getattr(env, name).shape
    setattr(env, name, gym.spaces.Box(-np.inf, np.inf, shape))
  return tools.wrappers.ConvertTo32Bit(env)


def _name_state(tf, env, algorithm):
  """Return what changes in an execution, by its key."""
  found = {
    'action': env.action,
    'memory_index': algorithm._memory_index,
    'memory_length': algorithm._memory._length,
    'episode_length': algorithm._episodes._length,
    'penalty': algorithm._penalty,
    'last_mean': algorithm._last_mean,
    'last_action': algorithm._last_action,
  }
  for key, filter_ in (
    ('of', algorithm._observ_filter),
    ('rf', algorithm._reward_filter),
  ):
    found[f'{key}c'] = filter_._count
    found[f'{key}m'] = filter_._mean
    found[f'{key}v'] = filter_._var_sum
  for variable in tf.trainable_variables():
    scope, name = variable.op.name.split('/')[-2:]
    found[f'var_{scope}_{name}'] = variable
  return found


_UPDATES = 'small_change', 'moderate', 'cutoff_active', 'one_epoch'
_FILES: dict[str, Callable[[Any], dict[str, Any]]] = {
  'returns': _record_returns,
  'diag_normal': _record_divergences,
  'streaming_mean': _record_mean,
  'streaming_normalize': _record_normalize,
  **{
    name: functools.partial(_record_network, name)
    for name in ('feed_forward_gaussian', 'recurrent_gaussian')
  },
  'episode_memory': _record_memory,
  **{
    f'update_{name}': functools.partial(_record_update, f'update_{name}')
    for name in (*_UPDATES, 'gae_lambda', 'recurrent')
  },
  'mock_environment': _record_environment,
  'wrappers': _record_wrappers,
  'loop_schedule': _record_schedules,
  'end_to_end': _record_end_to_end,
}
