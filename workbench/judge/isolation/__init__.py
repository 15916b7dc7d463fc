"""A worker seen from the judge: started, closed in, spoken to, watched and killed."""
