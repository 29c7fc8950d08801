"""The worker: a process of its own that drains the queue of trainings and runs. Heavy."""
