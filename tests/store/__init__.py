"""The contract of stores/base.py, held against every store, and what a store of one kind promises besides."""
