"""The caches of all kinds together, the reads that fill their gaps, and one call's view over both."""
