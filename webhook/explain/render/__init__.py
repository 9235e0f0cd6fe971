"""An Explanation as text for a terminal."""
