#!/usr/bin/env bash
# The tests of psycopg 3, from the checkout of its repository in PSYCOPG_SOURCE,
# run with the psycopg of the system's Python: see the README.
set -euo pipefail
usage='usage: python.sh prepare DIR, or python.sh psycopg DIR OUTPUT'
suite=${1:?$usage} source=$(realpath "${2:?$usage}")

case $suite in
prepare)
    # Without the packages beside the tests, which would be imported.
    cp -r "$PSYCOPG_SOURCE"/{tests,pyproject.toml} "$source"
    ;;
psycopg)
    output=$(realpath "${3:?$usage}")
    cd "$source"
    export PSYCOPG_TEST_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE"
    export PSYCOPG_IMPL=python
    exec /usr/bin/python3 -m pytest --quiet -m 'not slow' --junitxml "$output/junit.xml" tests
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
