"""What all readers share: the class `Reader`, declared options, sinks, files, and classes of the user's own."""
