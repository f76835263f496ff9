"""The template of plain loops on a GPU, for programs that no other template serves."""
