"""`+experiment=practice`: what practitioners use beside Gapwise, everybody tuned in the same way on the same data.

`table.py` lists the tasks and who takes part; `peers/` has a file for each package; `ours.py` calls the public interface;
`measure.py` measures one contestant on one split, in a process of its own; `run.py` goes through the table; `page.py` makes
the page from the records.
"""
