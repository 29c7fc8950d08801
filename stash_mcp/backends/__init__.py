"""Where the work is done: on this machine, or by a hosted service, behind one interface."""
