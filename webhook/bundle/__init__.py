"""The command bundle: writes what the other commands read of a cluster into one file, without anything secret."""
