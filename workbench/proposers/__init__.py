"""Who writes candidates: experts, language models, the person, recordings. One protocol: Brief in, Proposal out."""
