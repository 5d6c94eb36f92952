"""Push a box to a goal; the published runs used several ranks."""

from baselines_her.params import common

cpanel = common.make_cpanel('FetchPush-v1', number_epochs=50)
gen_params = common.gen_params
