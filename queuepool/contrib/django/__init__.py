"""Django: its settings, its commands, its transactions and its tasks. Add this package to ``INSTALLED_APPS``."""
