"""The version of this library, read by the package's metadata too."""

VERSION = "0.1.0"
