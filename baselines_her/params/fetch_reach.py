"""Move the hand of a robot to a place, which is learned within minutes."""

from baselines_her.params import common

cpanel = common.make_cpanel('FetchReach-v1', number_epochs=10)
gen_params = common.gen_params
