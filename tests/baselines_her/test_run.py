"""The names of the original's run.py and cmd_util, used from Python."""

import pytest

from agents.run import errors
from agents.tools.tf1 import tf
from baselines_her import cmd_util, her, logger, run, vec_env
from tests import golden
from tests.baselines_her import toy


def test_parser_has_the_flags():
  """cmdline_logger.json: argparse reads what the command line reads."""
  assert run.common_arg_parser is cmd_util.common_arg_parser
  for entry in golden.load_json('her/cmdline_logger')['cmdline']:
    args, unknown = run.common_arg_parser().parse_known_args(entry['argv'][1:])
    wanted, rest = run.parse_args(entry['argv'])
    assert vars(args) == vars(wanted) and unknown == rest
  parser = run.common_arg_parser()
  parser.add_argument('--mine', type=int, default=3)
  args = parser.parse_args(['--play', '--noresume', '--num_env=2'])
  assert (args.mine, args.play, args.resume, args.num_env) == (
    3,
    True,
    False,
    2,
  )
  assert '--num_timesteps' in parser.format_help()


def test_names_of_the_original():
  args, _ = run.parse_args(['program', '--env=FetchPush-v1'])
  assert run.get_env_type(args) == ('robotics', 'FetchPush-v1')
  args.env_type = 'mine'
  assert run.get_env_type(args) == ('mine', 'FetchPush-v1')
  assert run.get_learn_function('her') is her.learn
  assert run.get_learn_function_defaults('her', 'robotics') == {}
  assert run.get_default_network('robotics') == 'mlp'
  for function in (run.get_learn_function, lambda x: run.train(args, {})):
    args.alg = 'ppo2'
    with pytest.raises(errors.UsageError, match="'ppo2' is unknown"):
      function('ppo2')


def test_build_env(tmp_path, monkeypatch):
  """Environments of the flags, after a session for their training."""
  toy.use_toy(monkeypatch, 5)
  args, _ = run.parse_args(['program', '--seed=3', '--reward_scale=2'])
  with tf.Graph().as_default(), logger.scoped_configure(str(tmp_path), []):
    env = run.build_env(args)
    assert isinstance(env, vec_env.DummyVecEnv) and env.num_envs == 1
    assert env.reset()['observation'].shape == (1, 4)
    session = tf.get_default_session()
    assert run.build_env(args) and tf.get_default_session() is session
    session.close()
  assert (tmp_path / '0.0.monitor.csv').exists()
