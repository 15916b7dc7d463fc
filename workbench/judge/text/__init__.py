"""What a candidate's text shows before it runs."""
