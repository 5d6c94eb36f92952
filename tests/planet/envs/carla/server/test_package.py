"""What we call of CARLA's package, and whether it is there."""

import pytest

pytest.importorskip('carla')

CALLS = {
  'ActorAttribute': 'as_str __int__',
  'ActorBlueprint': 'id has_attribute get_attribute set_attribute',
  'ActorSnapshot': 'get_transform get_velocity get_angular_velocity',
  'Actor': 'id parent attributes type_id destroy bounding_box',
  'BlueprintLibrary': 'find filter',
  'Client': 'set_timeout get_server_version get_client_version get_world '
  'get_available_maps load_world get_trafficmanager apply_batch_sync',
  'CollisionEvent': 'frame other_actor normal_impulse',
  'Image': 'frame width height raw_data',
  'Map': 'name to_opendrive get_spawn_points get_waypoint get_topology',
  'Sensor': 'listen stop',
  'TrafficManager': 'set_synchronous_mode set_random_device_seed shut_down '
  'set_global_distance_to_leading_vehicle ignore_lights_percentage',
  'Vehicle': 'apply_control get_control get_velocity set_autopilot',
  'WalkerAIController': 'start stop go_to_location',
  'World': 'tick get_snapshot get_settings apply_settings get_map get_actors '
  'get_actor get_blueprint_library try_spawn_actor spawn_actor set_weather '
  'get_random_location_from_navigation set_pedestrians_seed wait_for_tick',
  'WorldSettings': 'synchronous_mode fixed_delta_seconds no_rendering_mode '
  'substepping max_substep_delta_time max_substeps',
  'WorldSnapshot': 'find timestamp',
  'command': 'SpawnActor DestroyActor SetAutopilot FutureActor',
}


@pytest.mark.parametrize('kind', CALLS)
def test_the_real_package_has_what_we_call(kind):
  """The pretended world may not offer more than the real one."""
  import carla

  for name in CALLS[kind].split():
    assert hasattr(getattr(carla, kind), name), (kind, name)


def test_weathers_are_those_of_the_package():
  import carla

  from planet.envs.carla import scenarios

  for name in scenarios.WEATHERS:
    assert isinstance(
      getattr(carla.WeatherParameters, name), carla.WeatherParameters
    )
