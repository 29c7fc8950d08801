"""Skills: the SKILL.md document, what a body would execute, agents' folders, installation."""
