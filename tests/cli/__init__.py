"""The commands, their messages and their files."""
