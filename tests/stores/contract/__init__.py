"""The contract of queuepool/stores/contract.py, held against every store, and what one store promises besides."""
