"""The optimisation itself: models called through LiteLLM, GEPA, and what surrounds them. Heavy."""
