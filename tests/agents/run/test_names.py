"""Names that users see: few, the same everywhere, and stable."""

import pytest

from agents.run import log, names

# Tags and keys that this version and earlier ones write, and their names.
PPO = 'simulate/cond_2/end_episode/cond/cond/training/'
PLANET = 'graph/summaries/'
KNOWN = {
  ('train', f'{PPO}update/mean_value_loss'): 'loss/value',
  ('train', f'{PPO}update/mean_return'): 'update/value_target',
  ('train', f'{PPO}adjust_penalty/kl_change'): 'update/kl_change',
  ('train', f'{PPO}scan_1/cond/avg_value_loss'): 'update/avg_value_loss',
  ('train', f'{PPO}scan/cond/policy_gradient_norm'): (
    'optimizer/policy_gradient_norm'
  ),
  ('eval', 'simulate/cond_4/mean_length'): 'length/test',
  ('train', 'simulate/perform/cond/action'): 'policy/action',
  ('train', 'simulate/experience/cond/cond/action'): 'data/action',
  (
    'train',
    'simulate/experience/cond/remember/normalize_observ/update/value',
  ): ('data/observ_value'),
  ('train', f'{PLANET}general/objectives/divergence'): 'loss/divergence',
  ('test', f'{PLANET}general/objectives/image'): 'loss/test/image',
  ('test', f'{PLANET}general/steps_per_second'): (
    'time/test/examples_per_second'
  ),
  ('train', f'{PLANET}openloop/state_1/reward_trajectory'): (
    'model/openloop/reward_trajectory'
  ),
  ('train', f'{PLANET}closedloop/prior/image/error/image/0'): (
    'model/closedloop_prior/error'
  ),
  ('test', 'trainer/graph/phase_test/cond_1/trainer/test/score'): 'return/test',
  ('test', f'{PLANET}simulation/s/test_main_gym_A-v1/return'): (
    'return/test_main_gym_A-v1'
  ),
  ('epoch', 'test_return'): 'return/test',
  ('epoch', 'train_return'): 'return/train',
  ('epoch', 'return'): 'return/train',
  ('epoch', 'success_rate'): 'success/train',
  ('epoch', 'train/success_rate'): 'success/train',
  ('epoch', 'seconds'): 'time/seconds',
  ('epoch', 'updates_per_second'): 'time/updates_per_second',
  ('epoch', 'reward/test/episodic'): 'return/test',
  ('epoch', 'returns/eval'): 'return/test',
  ('epoch', 'losses/kl_penalty'): 'update/avg_kl_penalty',
  ('epoch', 'gradients/norm'): 'optimizer/grad_norm',
}
GROUPS = 'data length loss model optimizer policy return success time update'


@pytest.mark.parametrize('phase, tag', sorted(KNOWN))
def test_names(phase, tag):
  """A name is that of itself, so that files of today are read unchanged."""
  name = names.plain_name(tag, phase)
  assert name == KNOWN[phase, tag]
  assert name.split('/')[0] in GROUPS.split()
  assert names.rename({name: -2.0}, phase) == {name: -2.0}


def test_log_probabilities_become_losses():
  """And divergences, which are losses, stay."""
  tags = {'graph/objectives/image': -3.0, 'graph/objectives/overshooting': 2.0}
  wanted = {'loss/image': 3.0, 'loss/overshooting': 2.0}
  assert names.rename(tags, 'train') == wanted


def test_unknown_tags_lose_their_scopes_only():
  assert names.plain_name('graph/cond_3/mine/scan_1/value') == 'mine/value'
  assert names.plain_name('cond/graph') == 'cond/graph'
  # Those of users stay as they are.
  mine = {'a/mean_score': 1.0, 'return': 2.0}
  assert names.rename(mine, names.OWN) == mine


def test_files_of_earlier_versions(tmp_path):
  """Lines have the names of today; those of users keep theirs."""
  place = {'step': 1, 'wall_time': 2.0, 'env_steps': 100}
  path = str(tmp_path / 'metrics.jsonl')
  old = {'graph/objectives/image': -3.0, 'x/optimizer_main/grad_norm': 4.0}
  log.append_json(path, {'phase': 'train', 'global_step': 1, **place, **old})
  old = {'train_return': 5.0, 'episodes': 6}
  log.append_json(path, {'phase': 'epoch', 'global_step': 2, **place, **old})
  old = {'return': 7.0}
  log.append_json(path, {'phase': names.OWN, 'global_step': 2, **place, **old})
  rows = [
    {k: x for k, x in row.items() if k not in ('phase', 'global_step', *place)}
    for row in log.read_metrics(str(tmp_path))
  ]
  assert rows == [
    {'loss/image': 3.0, 'optimizer/grad_norm': 4.0},
    {'return/train': 5.0, 'time/episodes': 6},
    {'return': 7.0},
  ]


def test_event_files_of_phases():
  """Everything but the scalars, without scopes."""
  from agents.run.tf1 import tf

  summary = tf.Summary(
    value=[
      tf.Summary.Value(tag='graph/a/objectives/image', simple_value=-3.0),
      tf.Summary.Value(
        tag='simulate/perform/cond/std', histo=tf.HistogramProto(num=1)
      ),
      tf.Summary.Value(
        tag='graph/summaries/openloop/image/prediction/image/0',
        image=tf.Summary.Image(height=1),
      ),
    ]
  )
  cleaned = log.clean_summary(summary.SerializeToString())
  values = tf.Summary.FromString(cleaned).value
  assert [x.tag for x in values] == ['policy/std', 'model/openloop/prediction']
  del summary.value[1:]
  assert log.clean_summary(summary.SerializeToString()) == b''
