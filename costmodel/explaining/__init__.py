"""What a model looks at, which decisions tell fast from slow, and how near a roof a schedule is."""
