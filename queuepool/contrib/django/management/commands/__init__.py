"""The command that queuepool adds to ``manage.py``."""
