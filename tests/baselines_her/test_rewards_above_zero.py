"""Environments whose rewards can be above 0, and their success."""

from unittest import mock

import pytest

import baselines_her
from agents.envs import contract
from baselines_her import checkpoints, config, library, settings
from baselines_her.params import common
from baselines_her.pipeline.memory import HERMemory
from tests.agents.envs import strict
from tests.baselines_her import test_library

ENV = strict.GOAL_IDS['doubles']
SAID = 'can be above 0: clip_pos_returns=False'


def test_reward_that_no_step_shows():
  """The first steps have reward 0; reached goals would have 1."""
  task = config.Task(ENV)
  assert task.usual == {'clip_pos_returns': False, 'max_u': [0.1, 2.0]}
  params, values, _ = settings.settle(ENV, 1, {}, usual=task.usual)
  assert not params['clip_pos_returns'] and not values.clip_pos_returns
  (note,) = task.notes(values)
  assert SAID in note


def test_what_the_user_says_wins():
  task = config.Task(ENV)
  given = {'clip_pos_returns': True}
  _, values, _ = settings.settle(ENV, 1, given, usual=task.usual)
  assert values.clip_pos_returns
  (note,) = task.notes(values)
  assert 'learns nothing' in note


@pytest.mark.parametrize('old', [True, False, None])
def test_a_run_keeps_what_it_had(tmp_path, old):
  """None is a run of before, without this setting."""
  params, _, _ = settings.settle(ENV, 1, {})
  params['clip_pos_returns'] = old
  if old is None:
    del params['clip_pos_returns']
  config.write_params(params, str(tmp_path))
  usual = config.Task(ENV).usual
  run = checkpoints.Run(str(tmp_path))
  run.checkpoint = 'one'
  _, values, _ = settings.settle(ENV, None, {}, run, usual=usual)
  assert values.clip_pos_returns is (old is not False)


def test_rewards_up_to_zero():
  task = config.Task(test_library.ENV)
  assert task.usual == {} and task.notes(settings.settle(None, 1, {})[1]) == []


def test_pipeline():
  panel = common.make_cpanel(ENV, 1)
  for given, wanted in ((None, False), (True, True), (False, False)):
    panel['clip_pos_returns'] = given
    args = common.gen_params(panel)['memory']['train']['args']
    memory = HERMemory(mock.Mock(), **args)
    assert memory.task.settings.clip_pos_returns is wanted


def test_success_has_two_names():
  assert contract.find_success({'is_success': 0.0, 'success': True}) == 0
  assert contract.find_success({'success': True}) == 1
  assert contract.find_success({'success': 'yes', 'is_success': None}) is None


def test_training_and_evaluation(tmp_path, capsys):
  """Mazes report `success`; loaded agents keep to the space, too."""
  training = library.train(
    ENV, tmp_path, 10, test_library.PARAMS, 1, verbose=True
  )
  (record, _) = training
  assert record['success_rate'] == 1
  shown = capsys.readouterr()
  assert (shown.out + shown.err).count(SAID) == 1
  space = strict.action_space('doubles')
  with baselines_her.load(str(tmp_path)) as agent:
    assert agent.action_space == space
    observation, _ = strict.Strict('doubles', goals=True).reset()
    for _ in range(5):
      assert space.contains(agent.predict(observation)[0])
    assert baselines_her.evaluate(agent, episodes=1).successes == [True]
    env = strict.Strict('doubles', goals=True)
    agent.save(str(tmp_path / 'saved'))
  with baselines_her.load(str(tmp_path / 'saved')) as agent:
    assert agent.action_space == env.action_space
