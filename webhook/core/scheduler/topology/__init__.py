"""What the plugins that look at other pods share: topology domains, columns of node labels, and the search for pods.
No plugin is called from here.
"""
