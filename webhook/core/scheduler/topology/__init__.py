"""What the plugins that look at other pods share: topology domains, node inclusion, and the search for pods. No
plugin is called from here.
"""
