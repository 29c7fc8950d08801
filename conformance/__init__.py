"""The official conformance suite of the protocol, run against our server as a person starts it.

`python -m conformance [NAME ...]`, or `make conformance`. `catalogue.py` names every server
scenario of the suite: those that apply to this server, and why the others do not. It needs npm.
"""
