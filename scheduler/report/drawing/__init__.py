"""Draw figures, which are data, as SVG and PNG."""
