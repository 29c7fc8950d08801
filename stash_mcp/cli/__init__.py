"""The command `stash-skills`: the same backend as the server's, printed for people.

Exit codes: 0 done, 1 refused or failed, 2 used wrongly, 130 interrupted. Results go to standard
output; progress, advice and errors to standard error. With --json, standard output carries one
JSON value and nothing else.
"""
