"""Log and metrics of `serve`. Every room above imports it; it imports only the core. Nothing here decides, and no
call waits for it.
"""
