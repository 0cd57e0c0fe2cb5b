#!/usr/bin/env bash
# PostgreSQL's own tests: see the README. They are run with the programs and
# headers of Debian's postgresql-15 and postgresql-server-dev-15.
set -euo pipefail
usage='usage: postgres.sh prepare DIR, or postgres.sh regress|isolation DIR OUTPUT'
suite=${1:?$usage} source=$(realpath "${2:?$usage}")
config=/usr/lib/postgresql/15/bin/pg_config

if [[ $suite == prepare ]]; then
    "$(dirname "$0")/fetch.sh" "$source"
    # The functions in C that the tests call. The others come with PostgreSQL.
    gcc -shared -fPIC -O2 -I"$("$config" --includedir-server)" \
        -o "$source/regress.so" "$source/regress/regress.c"
    ln -s "$("$config" --pkglibdir)"/{autoinc,refint}.so "$source"
    chmod -R a+rX "$source"
    exit
fi

cd "${3:?$usage}"
umask 0 # the server's user writes into the folders that pg_regress creates
programs=$(dirname "$("$config" --pgxs)")/../test
options=(
    --host "$PGHOST" --port "$PGPORT" --user "$PGUSER"
    --bindir "$("$config" --bindir)" --dlpath "$source"
    --inputdir "$source/$suite" --outputdir .
)
case $suite in
regress)
    exec "$programs/regress/pg_regress" "${options[@]}" \
        --schedule "$source/regress/parallel_schedule" --max-concurrent-tests 20
    ;;
isolation)
    exec "$programs/isolation/pg_isolation_regress" "${options[@]}" \
        --schedule "$source/isolation/isolation_schedule"
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
