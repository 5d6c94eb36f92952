"""The names of the original's run.py and cmd_util, used from Python."""

from agents.tools.tf1 import tf
from baselines_her import logger, run, vec_env
from tests import golden
from tests.baselines_her import toy


def test_parser_has_the_flags():
  """cmdline_logger.json: argparse reads what the command line reads."""
  for entry in golden.load_json('her/cmdline_logger')['cmdline']:
    args, unknown = run.common_arg_parser().parse_known_args(entry['argv'][1:])
    wanted, rest = run.parse_args(entry['argv'])
    assert vars(args) == vars(wanted) and unknown == rest
  assert '--num_timesteps' in run.common_arg_parser().format_help()


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
