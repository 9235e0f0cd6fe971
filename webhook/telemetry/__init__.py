"""Log and metrics of `serve`. The rooms above import it, and it imports only core and component_base. Nothing here
decides, and no call waits for it.
"""
