"""Parameters of your own for the pipeline: DDPG with a network of yours.

  agents-session --params my_params
  agents-session --params my_params --cpanel '{"number_epochs": 20}'

A session names your modules, so it is loaded with `--trust my_params,my_env`.
"""

from agents.pipeline.params import ddpg_pendulum

# What --cpanel can change: all that DDPG has, with other values.
cpanel = {
  **ddpg_pendulum.cpanel,
  'from_module': 'my_env',
  'model_name': 'PushCart-v0',
  'number_epochs': 10,
}


def gen_params(cpanel):
  """Return the tree of parameters, which is plain data."""
  params = ddpg_pendulum.gen_params(cpanel)
  # Functions and classes are named by text, those of a file as module:name.
  policy = params['agents']['agent']['policy']
  policy['args']['actor'] = {'reference': 'my_params:actor'}
  return params


def actor(observ, low, high):
  """Return actions [batch, size] for observations [batch, size]."""
  # Processes of environments may import this file; TensorFlow stays out.
  from agents.tools import layers
  from agents.tools.tf1 import tf

  hidden = layers.dense(observ, 64, tf.nn.relu)
  hidden = layers.dense(hidden, 64, tf.nn.relu)
  action = layers.dense(hidden, len(low), tf.tanh)
  return low + (action + 1) / 2 * (high - low)
