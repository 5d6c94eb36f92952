"""A small run of the pipeline: a variable learns the mean of random numbers."""

import os
import signal
import time

import numpy as np

from agents.pipeline.base import AgentBase, ExplorerBase
from agents.run import errors, stopping
from agents.tools.tf1 import tf
from tests import processes

cpanel = {
  'number_epochs': 2,
  'epoch_size': 3,
  'seed': 0,
  'learning_rate': 0.1,
  'pause': 0.0,
  'scale': 1.0,
  'fail_rank': None,
  'fail_at': None,
  'max_time': None,
  'max_iter': None,
  'memory_save': 'final',
  'signal_at': None,
  'test_interval': 1,
  'test_act': True,
  'score': '/reward/test/episodic',
}


def gen_params(cpanel):
  """Tree of parameters."""
  here = 'tests.agents.pipeline.toy'
  return {
    'runner': {
      'name': 'agents.pipeline.runner.Runner',
      'n_epochs': cpanel['number_epochs'],
      'n_cycles': cpanel['epoch_size'],
      'randargs': {'seed': cpanel['seed']},
      'max_time': cpanel['max_time'],
      'max_iter': cpanel['max_iter'],
      'memory_save': cpanel['memory_save'],
      'test_int': cpanel['test_interval'],
      'test_act': cpanel['test_act'],
      'score': cpanel['score'],
    },
    'memory': {'train': {'name': f'{here}.ListMemory'}},
    'agents': {
      'mean': {
        'name': f'{here}.MeanAgent',
        'args': {
          'learning_rate': cpanel['learning_rate'],
          'signal_at': cpanel['signal_at'],
        },
      }
    },
    'explorer': {
      mode: {
        'name': f'{here}.NumberExplorer',
        'args': {
          x: cpanel[x] for x in ('pause', 'scale', 'fail_rank', 'fail_at')
        },
      }
      for mode in ('train', 'test', 'eval')
    },
  }


class NumberExplorer(ExplorerBase):
  """Draws a random number per step."""

  def __init__(
    self,
    session,
    agents,
    mode='train',
    pause=0.0,
    scale=1.0,
    fail_rank=None,
    fail_at=None,
  ):
    super().__init__(session, agents, mode, win_size=-1)
    self._fail_at = fail_at
    self._pause, self._scale, self._fail_rank = pause, scale, fail_rank
    self.closed = False
    if fail_at == 'start' and session.comm.Get_rank() == fail_rank:
      raise errors.EnvError(f'The explorer of rank {fail_rank} is not there.')

  def update(self):
    rank = self.session.comm.Get_rank()
    if rank == self._fail_rank:
      raise errors.EnvError(f'The explorer of rank {rank} has failed.')
    if self._fail_at == [self.mode, self.timesteps]:
      raise errors.EnvError('The explorer has failed.')
    time.sleep(self._pause)
    observ = np.random.normal(3.0, 1.0, (1, 2))
    self.timesteps += 1
    self._set_meta()
    action = self.agents['mean'].action_generator({'agent': observ}, None, None)
    error = np.abs(observ - action['actions']).mean()
    self._report_episode(-float(self._scale * error))
    return {'/observations/agent': observ}

  def close(self):
    self.closed = True


class ListMemory:
  """Keeps all chunks."""

  def __init__(self, session, mode='train'):
    del session, mode
    self.values = np.zeros((0, 2))

  def store(self, chunk):
    self.values = np.concatenate([self.values, chunk['/observations/agent']])

  def state_dict(self):
    return {'values': self.values}

  def load_state_dict(self, state):
    self.values = state['values']


class MeanAgent(AgentBase):
  """Moves a variable towards numbers of the memory, drawn at random."""

  def __init__(
    self, session, memory, name='mean', learning_rate=0.1, signal_at=None
  ):
    super().__init__(session, memory, name)
    self._signal_at = signal_at
    with tf.variable_scope(name):
      self.mean = tf.get_variable(
        'mean', (), initializer=tf.zeros_initializer()
      )
      self._value = tf.placeholder(tf.float32, ())
      loss = tf.square(self.mean - self._value)
      self._train = tf.train.AdamOptimizer(learning_rate).minimize(loss)
      self._loss = loss
    self.updates = 0

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ):
    mean = self.session.tf_session().run(self.mean)
    return {'actions': mean, 'hidden_state': None, 'artifacts': {}}

  def step(self):
    value = np.random.choice(self.memory['train'].values.ravel())
    run = self.session.tf_session().run
    loss, _ = run([self._loss, self._train], {self._value: value})
    return {'loss': loss}

  def update(self):
    self.updates += 1
    if self.updates == self._signal_at:
      os.kill(os.getpid(), signal.SIGUSR1)
      # Another thread turns it into a request, in its own time.
      with processes.time_limit(30):
        while not stopping.requested():
          time.sleep(0.01)
    self.session.monitor('/update/loss', self.step()['loss'])

  def state_dict(self):
    return {'updates': self.updates}

  def load_state_dict(self, state):
    self.updates = state['updates']
