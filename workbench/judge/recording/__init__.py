"""What a launcher does at the real shapes without a GPU: its launches, their traffic, and a time modelled from both."""
