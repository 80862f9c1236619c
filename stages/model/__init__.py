"""What leaves home: a model, its files, what it answers, how sure it is of that and why."""
