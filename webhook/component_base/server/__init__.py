"""A listening address of a program: sockets, connections and their limits. It knows no path and no certificate."""
