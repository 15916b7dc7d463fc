"""The longer commands of the command line, one a file. `workbench.cli` parses and calls them."""
