"""Whether a selector or a toleration of a pod matches: what upstream keeps in apimachinery and component-helpers."""
