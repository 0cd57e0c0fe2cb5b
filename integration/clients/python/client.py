"""Runs statements with psycopg; see ../README.md for the interface."""

import datetime
import re
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


TYPES = {"date": datetime.date.fromisoformat, "integer": int, "text": str}


def bound(statement, form):
    """Splits a statement from its parameters, for which psycopg has marks of its own."""
    text, *parameters = statement.split("\x1f")
    text = re.sub(r"\$[0-9]+", form, text.replace("%", "%%"))
    return text, [TYPES[kind](value) for kind, value in (p.split(" ", 1) for p in parameters)]


def run(connection, statement, prepare, parameters=None):
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement, parameters, prepare=prepare)
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
        elif mode in ("bound", "bound-binary"):
            for statement in statements:
                text, parameters = bound(statement, "%b" if mode == "bound-binary" else "%t")
                run(connection, text, prepare=True, parameters=parameters)
        elif mode == "together":
            run(connection, ";\n".join(statements), prepare=False)
        elif mode == "pipeline":
            run_pipelined(connection, statements)
        else:
            sys.exit(f"psycopg has no mode {mode}")


main()
