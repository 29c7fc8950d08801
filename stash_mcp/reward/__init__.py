"""The reward model: trained on pairs, and scoring rendered conversations. Loads torch."""
