"""Types of places on a map."""

# x, y and z in meters.
Location = tuple[float, float, float]
# x, y and z in meters, and heading in degrees, positive to the right.
Pose = tuple[float, float, float, float]
# x and y in meters.
Point = tuple[float, float]
