"""The actions: each is what a command does, and leaves the same line in the journal."""
