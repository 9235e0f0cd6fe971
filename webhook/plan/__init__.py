"""What brings a VM that is apart to its share-managers: `status --plan` prints it, and `reunite` carries it out."""
