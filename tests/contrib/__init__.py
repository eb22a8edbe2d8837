"""Tests of ``queuepool.contrib``, with real projects."""
