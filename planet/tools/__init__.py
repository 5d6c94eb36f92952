"""What only PlaNet needs, and the shared tools under their old names."""

from agents.tools import lazy

lazy.export(
  __name__,
  {
    'AttrDict': 'planet.tools.attr_dict:AttrDict',
    'CustomOptimizer': 'planet.tools.custom_optimizer:CustomOptimizer',
    'StreamingMean': 'agents.tools.streaming_mean:StreamingMean',
    'bind': 'planet.tools.bind:bind',
    'bound_action': 'planet.tools.bound_action:bound_action',
    'count_dataset': 'planet.tools.count_dataset:count_dataset',
    'count_weights': 'agents.tools.count_weights:count_weights',
    'filter_variables': 'planet.tools.filter_variables:filter_variables',
    'gif_summary': 'planet.tools.image_summaries:gif_summary',
    'image_strip_summary': 'planet.tools.image_summaries:image_strip_summary',
    'mask': 'planet.tools.mask:mask',
    'nested': 'agents.tools.nested',
    'numpy_episodes': 'planet.tools.numpy_episodes',
    'overshooting': 'planet.tools.overshooting:overshooting',
    'preprocess': 'planet.tools.preprocess',
    'reshape_as': 'planet.tools.reshape_as:reshape_as',
    'schedule': 'planet.tools.schedule',
    'shape': 'planet.tools.shape:shape',
    'soft_copy_weights': 'planet.tools.target_network:soft_copy_weights',
    'summary': 'planet.tools.summary',
    'track_network': 'planet.tools.target_network:track_network',
    'unroll': 'planet.tools.unroll',
  },
)
