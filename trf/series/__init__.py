"""Does sum exp(p(n)) converge, and what is it?"""
