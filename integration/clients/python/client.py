"""Runs statements with psycopg; see ../README.md for the interface."""

import sys

import psycopg

ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def show(*fields):
    print("\t".join("\\N" if f is None else f.translate(ESCAPES) for f in fields))


def show_result(cursor):
    """Prints the current result set of a cursor, as Postgres sent it."""
    result = cursor.pgresult
    if result is None or result.nfields == 0:
        return
    show("columns", *(result.fname(c).decode() for c in range(result.nfields)))
    for r in range(result.ntuples):
        values = (result.get_value(r, c) for c in range(result.nfields))
        show("row", *(None if v is None else v.decode() for v in values))


def run(connection, statement, prepare):
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement, prepare=prepare)
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            show("error", error.sqlstate, error.diag.message_primary)
            return
        show_result(cursor)
        while cursor.nextset():
            show_result(cursor)


def run_pipelined(connection, statements):
    cursors = []
    try:
        with connection.pipeline():
            for statement in statements:
                cursors.append(connection.cursor())
                cursors[-1].execute(statement)
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        show("error", error.sqlstate, error.diag.message_primary)
        return
    for cursor in cursors:
        show_result(cursor)


def main():
    mode = sys.argv[1]
    statements = sys.stdin.buffer.read().decode().split("\0")[:-1]
    with psycopg.connect("", autocommit=True) as connection:
        if mode in ("simple", "extended"):
            for statement in statements:
                run(connection, statement, prepare=mode == "extended")
        elif mode == "together":
            run(connection, ";\n".join(statements), prepare=False)
        elif mode == "pipeline":
            run_pipelined(connection, statements)
        else:
            sys.exit(f"psycopg has no mode {mode}")


main()
