"""What we ask of the operating system: processes, signals, files."""
