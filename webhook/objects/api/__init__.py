"""The types of objects, with all the fields that the commands read. Core reads fewer fields of some kinds."""
