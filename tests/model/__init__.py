"""The protocol as a model, the stores beside models of them, and the tests that search both."""
