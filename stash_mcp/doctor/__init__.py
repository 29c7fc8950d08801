"""What is there, what is missing, and what to do about each; one group of checks a file.

Covered: this installation, this machine, the library and its worker, keys, models and Stash when
asked. Nothing here loads the libraries of the local pipeline: what needs them asks a process.
"""
