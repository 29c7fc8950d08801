"""Turn reviewers' comments on agent conversations into a skill that an agent loads."""

__version__ = "0.1.0"
