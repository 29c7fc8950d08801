"""Annotated traces -> what trains a reward model (pairs) and what GEPA replays (examples)."""
