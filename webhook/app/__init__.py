"""The webhook as a process: it connects a cluster, core and the listeners, starts them and drains them. Rules do not
belong here.
"""
