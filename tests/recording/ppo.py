"""Numbers of PPO, by the copy of its original in PyBullet."""

from typing import Any

from scripts.comparison import ppo_original
from tests.recording.data import Results, below, evaluate, read, session


def prepare(clone: str, out: str) -> tuple[str, Results]:
  """Return the folder of the files, and an iterator of their results."""
  ppo_original.prepare(clone)
  import tensorflow.compat.v1 as tf

  return 'ppo', record(tf)


def record(tf: Any) -> Results:
  """Yield the results of returns, divergences and running statistics."""
  from pybullet_envs.agents import tools
  from pybullet_envs.agents.ppo import normalize, utility

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
  yield 'returns.npz', evaluate(tf, found)

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
  yield 'diag_normal.npz', evaluate(tf, found)

  data, found = read('ppo', 'streaming_mean'), {}
  mean = tools.StreamingMean((), tf.float32)
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
  yield 'streaming_mean.npz', found

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
  yield 'streaming_normalize.npz', found

  from pybullet_envs.agents import networks
  from pybullet_envs.agents.ppo import memory

  data = read('ppo', 'feed_forward_gaussian')
  names = 'policy_layers', 'value_layers'
  config = tools.AttrDict({k: data[k].tolist() for k in names})
  config = tools.AttrDict(config, init_mean_factor=0.1, init_logstd=-1.0)
  before = len(tf.global_variables())
  output = networks.feed_forward_gaussian(
    config,
    int(data['action_size']),
    tf.constant(data['observations']),
    tf.constant(data['length']),
  )
  weights = below(data, 'weight_').values()
  # The distribution was one of tf.contrib, so not the original's.
  found = {
    'mean': output.mean,
    'logstd': output.logstd,
    'value': output.value,
  }
  with session(tf) as sess:
    for variable, value in zip(tf.global_variables()[before:], weights):
      variable.load(value, sess)
    yield 'feed_forward_gaussian.npz', sess.run(found)

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
  yield 'episode_memory.npz', found


def _name_episodes(prefix, content):
  buffers, length = content
  values = {f'{prefix}buffer{i}': x for i, x in enumerate(buffers)}
  return {**values, f'{prefix}length': length}
