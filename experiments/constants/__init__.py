"""Programs with constants beside libraries; see README.md."""
