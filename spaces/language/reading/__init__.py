"""How text becomes a program: statements, expressions, declarations, stages, and checks of it."""
