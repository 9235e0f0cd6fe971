"""`serve` as a process: it connects the cluster, the core and the listeners. Only this room imports all the others.
Rules do not belong here.
"""
