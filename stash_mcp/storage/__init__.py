"""What is kept on this machine: the SQLite library, files written whole, locks."""
