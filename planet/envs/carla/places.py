"""Types of places on a map."""

# x, y and z in metres.
Location = tuple[float, float, float]
# x, y and z in metres, and heading in degrees, positive to the right.
Pose = tuple[float, float, float, float]
# x and y in metres.
Point = tuple[float, float]
