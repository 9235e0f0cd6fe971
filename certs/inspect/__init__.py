"""`inspect`: checks the certificate and its authorities, in a cluster or in a directory. It writes nothing."""
