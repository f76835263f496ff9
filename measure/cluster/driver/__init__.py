"""The driver's decisions: who builds and who runs each candidate. Pure: no Ray, no clock."""
