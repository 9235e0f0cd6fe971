"""What the plugins that look at other pods ask of node labels and topologies."""
