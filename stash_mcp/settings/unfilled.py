"""What a client passes on for a variable that it has no value for."""

import re

# Clients pass an unset `${VAR}` of their configuration through literally.
UNFILLED = re.compile(r"^\$\{[^}]*\}$")
