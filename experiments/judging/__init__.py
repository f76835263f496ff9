"""What it takes to work out what is allowed of programs, on a GPU and on its host."""
