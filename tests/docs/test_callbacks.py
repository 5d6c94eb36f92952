"""Loops of docs/callbacks.md, with few steps, in this process."""

import os
import re

import numpy as np
import pytest

import agents
import baselines_her
from agents.run import log
from tests import golden
from tests.docs import small

with open(f'{golden.ROOT}/docs/callbacks.md', encoding='utf-8') as _page:
  BLOCKS = re.findall(r'```python\n(.*?)```', _page.read(), re.DOTALL)
STOP, EVALUATE, BEST, PPO, HER = BLOCKS


@pytest.fixture(autouse=True)
def few_steps(monkeypatch, tmp_path):
  """Small trainings in an empty folder."""
  monkeypatch.chdir(tmp_path)
  ppo = {**small.PPO, 'max_length': 20}
  for module, values in ((agents, ppo), (baselines_her, small.HER)):
    train = small.shrink_training(module.train, values, 150)
    monkeypatch.setattr(module, 'train', train)


def execute(code, *changes):
  """Run code with other numbers; return its variables."""
  for old, new in changes:
    assert old in code
    code = code.replace(old, new)
  variables = {'__name__': '__main__'}
  exec(compile(code, 'callbacks.md', 'exec'), variables)
  return variables


@pytest.mark.slow
def test_stops_at_a_return():
  """And the same call would go on."""
  result = execute(STOP, ('-200', '-100000'))
  assert result['record']['epoch'] == 1 and result['best'] < 0
  assert not list(result['training'])


@pytest.mark.slow
def test_evaluates_in_another_environment():
  """The agents differ, because each has learned more."""
  result = execute(EVALUATE, ('% 5', '% 2'), ('episodes=10', 'episodes=1'))
  lines = log.read_metrics(result['record']['logdir'])
  own = [x for x in lines if x['phase'] == 'own']
  returns = [x['return/harder'] for x in own]
  assert len(set(returns)) == len(returns) == result['record']['epoch'] // 2
  assert np.all(np.diff([x['env_steps'] for x in own]) > 0)


@pytest.mark.needs('gymnasium_robotics')
def test_saves_the_best():
  """It is the one that had the highest return."""
  result = execute(BEST, ('episodes=5', 'episodes=1'))
  lines = log.read_metrics(result['record']['logdir'])
  returns = [x['return/five_goals'] for x in lines if x['phase'] == 'own']
  assert len(returns) == result['record']['epoch']
  assert max(returns) == result['best']
  with baselines_her.load('logs/own_best/best') as agent:
    again = baselines_her.evaluate(agent, episodes=1, seed=1)
  assert again.mean == result['best']


@pytest.mark.slow
@pytest.mark.needs('optuna')
def test_study_of_ppo():
  """Trials below the median are pruned."""
  result = execute(
    PPO,
    ('n_trials=30', 'n_trials=3'),
    ('n_startup_trials=5, n_warmup_steps=3', 'n_startup_trials=1'),
    ("scores.append(record['test_return'])", 'scores.append(-trial.number)'),
  )
  trials = result['study'].trials
  assert [x.state.name for x in trials] == ['COMPLETE', 'PRUNED', 'PRUNED']
  assert [len(x.intermediate_values) for x in trials[1:]] == [1, 1]
  assert result['study'].best_value == 0
  assert os.path.exists('tune.db')


@pytest.mark.slow
@pytest.mark.needs('optuna', 'gymnasium_robotics')
def test_study_of_her():
  """It has a value for each epoch, and goes on with its file."""
  execute(HER, ('n_trials=30', 'n_trials=1'))
  result = execute(HER, ('n_trials=30', 'n_trials=1'))
  trials = result['study'].trials
  assert [x.state.name for x in trials] == ['COMPLETE'] * 2
  assert result['study'].best_value == max(x.value for x in trials)
  assert all(len(x.intermediate_values) > 2 for x in trials)
  assert sorted(os.listdir('logs/tune_her')) == ['0', '1']
