"""Parse a program's text: statements, expressions, declarations, stages, and checks of it."""
