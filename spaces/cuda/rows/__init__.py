"""The template of reductions along rows and of elementwise maps, with elements kept on chip."""
