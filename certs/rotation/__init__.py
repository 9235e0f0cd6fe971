"""Which step of a rotation is next, and which authorities the API servers must trust. No clock and no I/O may be
here.
"""
