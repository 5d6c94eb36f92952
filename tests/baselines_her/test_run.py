"""The names of the original's run.py and cmd_util, used from Python."""

from agents.run import flags
from agents.tools.tf1 import tf
from baselines_her import logger, run, vec_env
from tests import golden
from tests.baselines_her import toy


def test_parser_has_the_flags():
  """cmdline_logger.json: the command line reads what argparse reads."""
  for entry in golden.load_json('her/cmdline_logger')['cmdline']:
    known, unknown = run.parse_args(entry['argv'])
    kept = [x for x in entry['argv'] if x not in unknown]
    with flags.parsed('her-train', '', run.define_flags, kept[1:]):
      found = {x: getattr(run.FLAGS, x) for x in vars(known)}
    assert found == vars(known)
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
