"""Programs seen as rows: reductions along each row, and maps; whatever target they run on."""
