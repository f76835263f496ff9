"""A block that decodes one token of many sequences, at every number of sequences, on a GPU."""
