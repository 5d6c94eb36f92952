"""Move a robot's hand to a goal, which takes minutes to learn."""

from baselines_her.params import common

cpanel = common.make_cpanel('FetchReach-v1', number_epochs=10)
gen_params = common.gen_params
