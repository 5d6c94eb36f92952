"""Push a box to a place; start it with several ranks, as published runs."""

from baselines_her.params import common

cpanel = common.make_cpanel('FetchPush-v1', number_epochs=50)
gen_params = common.gen_params
