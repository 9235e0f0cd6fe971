"""An explanation as text."""
