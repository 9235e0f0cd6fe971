"""The decoders of an API server's answers: objects, pages of a list, events of a watch. They know no rule of core."""
