"""Runs and trainings as jobs: their records, folders, plan, and the process that does them."""
