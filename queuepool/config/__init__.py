"""The configuration: its sources, its checks, its settings."""
