"""The command line: one file a command; parse, one library call, print."""
