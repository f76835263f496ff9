"""Where the import packages are: each folder at the root is a package within ``tilewright``."""

from setuptools import find_packages, setup

FOLDERS = ("spaces", "measure", "costmodel", "scheduler")

setup(
    package_dir={
        "tilewright": "scheduler/face/tilewright",
        **{f"tilewright.{folder}": folder for folder in FOLDERS},
    },
    packages=[
        "tilewright",
        *(f"tilewright.{folder}" for folder in FOLDERS),
        *(f"tilewright.{folder}.{name}" for folder in FOLDERS for name in find_packages(folder)),
    ],
)
