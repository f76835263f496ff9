"""What comes from outside: text, numbers and files, checked where they enter."""
