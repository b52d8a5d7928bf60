"""How time passes, compiled, many episodes side by side."""
