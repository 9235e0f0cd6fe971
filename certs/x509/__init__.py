"""Key pairs and certificates: how they are made, read and verified. Pure: no I/O, no clock."""
