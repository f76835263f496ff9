"""One page and one picture of all committed comparisons with libraries."""
