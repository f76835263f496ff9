"""What a driver decides: who builds and who runs what. Pure: no Ray, no clock."""
