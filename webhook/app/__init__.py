"""`serve` as a process: this room connects the cluster, core and the listeners. Only it imports page, serving, kube and
files together. Rules do not belong here.
"""
