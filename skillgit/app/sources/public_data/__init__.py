"""Public data on their way to this machine: listed, downloaded, unpacked, read and written as files of items."""
