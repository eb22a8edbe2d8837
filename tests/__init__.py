"""The tests of queuepool, by kind; CONTRIBUTING.md says which kind lies where."""
