"""The operating system: processes, signals, files."""
