"""A Stash of our own for tests: real HTTP servers on loopback, with state.

world.py what it knows, requests.py what it accepts, views.py what it shows, jobs.py how its
trainings and runs go on, routes.py its API, serving.py and storage.py the two servers.
Times and paces are the test's: nothing here sleeps unless a test asks for a slow answer.
"""

from stand_in_stash.serving import Odd, StandIn, stand_in
from stand_in_stash.storage import Storage
from stand_in_stash.world import KEYS, World

__all__ = ["KEYS", "Odd", "StandIn", "Storage", "World", "stand_in"]
