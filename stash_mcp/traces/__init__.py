"""Outside formats -> traces, and annotations in and out. One adapter a file."""
