"""Examples with labels from files of arrays: what the reader `multiclass_arrays` is made of."""
