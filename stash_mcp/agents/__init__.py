"""Other programs' configuration: telling an agent how to start our server, and undoing it.

Covered: the entry of this server, in the files that the agents document. Not covered: anything
else in those files, which stays as it is byte for byte.
"""
