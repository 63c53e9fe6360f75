"""Drives a real DuckDB on a DuckLake catalog in SQLite.

  ducklake_real.py write CATALOG DATA COMMITS   makes commits, prints how many failed
  ducklake_real.py read CATALOG DATA            prints the snapshots and every table

The extensions are those of the installed packages: nothing is downloaded.
"""
import glob
import json
import os
import sys

import duckdb


def attach(catalog, data, options):
    con = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
    site = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in ('sqlite_scanner', 'ducklake'):
        (path,) = glob.glob(f'{site}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension')
        con.execute(f"LOAD '{path}'")
    con.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (DATA_PATH '{data}', {options})")
    return con


def statements(n):
    yield 'CREATE TABLE lake.orders (id BIGINT, region VARCHAR, amount DECIMAL(18,2), ts TIMESTAMP)'
    yield 'CREATE TABLE lake.events (id BIGINT, body VARCHAR)'
    for i in range(n):
        yield (f"INSERT INTO lake.orders SELECT range, 'r' || range % 7, range / 3, TIMESTAMP '2026-01-01' "
               f"FROM range({i * 20}, {i * 20 + 20})")
        if i % 3 == 0:
            yield f"INSERT INTO lake.events (id, body) VALUES ({i}, 'inlined')"
        if i % 10 == 5:
            yield f'UPDATE lake.orders SET amount = amount + 1 WHERE id % 50 = {i % 50}'
        if i % 10 == 8:
            yield f'DELETE FROM lake.orders WHERE id % 60 = {i % 60}'
        if i % 25 == 12:
            yield f'ALTER TABLE lake.events ADD COLUMN c{i} INTEGER'


def write(catalog, data, commits):
    con, done, failed = attach(catalog, data, "META_JOURNAL_MODE 'WAL'"), 0, []
    for sql in statements(int(commits)):
        try:
            con.execute(sql)
            done += 1
        except duckdb.Error as e:
            failed.append(f'{sql}: {e}')
    print(json.dumps({'commits': done, 'failed': len(failed), 'first': failed[:3]}))


def read(catalog, data):
    con = attach(catalog, data, 'READ_ONLY')
    out = {'snapshots': con.execute('SELECT COLUMNS(*)::VARCHAR FROM lake.snapshots() ORDER BY snapshot_id').fetchall()}
    for (name,) in con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY 1").fetchall():
        out[name] = con.execute(f'SELECT COLUMNS(*)::VARCHAR FROM lake.{name} ORDER BY ALL').fetchall()
    print(json.dumps(out))


if __name__ == '__main__':
    {'write': write, 'read': read}[sys.argv[1]](*sys.argv[2:])
