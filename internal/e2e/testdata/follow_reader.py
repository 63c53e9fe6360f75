"""Reads a follower's copy by a real DuckDB that has it attached READ_ONLY.

  follow_reader.py COPY   reads until its input ends, ten times at least, prints reads, busy, last

Each transaction reads the ledger twice and its total; a state that is mixed, or
older than one seen before, ends it with an error.
"""
import glob
import os
import select
import sys

import duckdb

con = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
site = os.path.dirname(os.path.dirname(duckdb.__file__))
(path,) = glob.glob(f'{site}/duckdb_extension_sqlite_scanner/extensions/*/sqlite_scanner.duckdb_extension')
con.execute(f"LOAD '{path}'")
con.execute(f"ATTACH '{sys.argv[1]}' AS copy (TYPE sqlite, READ_ONLY)")
reads = busy = last = 0
print('attached', flush=True)
while reads < 10 or not select.select([sys.stdin], [], [], 0)[0]:
    try:
        con.execute('BEGIN')
        n, w = con.execute('SELECT n, w FROM copy.total').fetchone()
        n2, w2, newest = con.execute('SELECT count(*), coalesce(sum(w), 0), coalesce(max(id), 0) FROM copy.ledger').fetchone()
        (w3,) = con.execute('SELECT coalesce(sum(w + octet_length(pad) * 0), 0) FROM copy.ledger').fetchone()
        con.execute('COMMIT')
    except duckdb.Error as e:
        if 'locked' not in str(e) and 'busy' not in str(e):
            raise
        busy += 1
        con.execute('ROLLBACK')
        continue
    if (n, w) != (n2, w2) or w != w3 or newest < last:
        sys.exit(f'mixed state: {n} {n2}, {w} {w2} {w3}, {newest} after {last}')
    reads, last = reads + 1, newest
print(reads, busy, last)
