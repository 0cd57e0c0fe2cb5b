#!/usr/bin/env bash
# The tests of the Go modules pgx and pq, in the versions of go.mod: see the
# README.
set -euo pipefail
usage='usage: go.sh prepare DIR, or go.sh pgx|pq DIR OUTPUT'
suite=${1:?$usage} source=$(realpath "${2:?$usage}")

if [[ $suite == prepare ]]; then
    cd "$(dirname "$0")"
    for module in pgx=github.com/jackc/pgx/v5 pq=github.com/lib/pq; do
        go mod download "${module#*=}"
        # A copy, because go writes into a module that it tests.
        cp -r "$(go list -m -f '{{.Dir}}' "${module#*=}")" "$source/${module%%=*}"
    done
    chmod -R u+w "$source"
    exit
fi

output=$(realpath "${3:?$usage}")
cd "$source/$suite"
psql=(psql --no-psqlrc --quiet --set ON_ERROR_STOP=1)
case $suite in
pgx)
    "${psql[@]}" --command 'create database pgx_test'
    "${psql[@]}" --dbname pgx_test --file testsetup/postgresql_setup.sql
    server="port=$PGPORT password=secret dbname=pgx_test"
    export PGX_TEST_DATABASE="host=$PGHOST $server user=pgx_md5 sslmode=disable"
    export PGX_TEST_TCP_CONN_STRING=$PGX_TEST_DATABASE
    export PGX_TEST_MD5_PASSWORD_CONN_STRING=$PGX_TEST_DATABASE
    export PGX_TEST_PLAIN_PASSWORD_CONN_STRING="host=$PGHOST $server user=pgx_pw sslmode=disable"
    export PGX_TEST_SCRAM_PASSWORD_CONN_STRING="host=$PGHOST $server user=pgx_scram sslmode=disable channel_binding=disable"
    tls="host=localhost $server user=pgx_ssl sslmode=verify-full sslrootcert=$PGSSLROOTCERT"
    unset PGSSLROOTCERT # the tests of the connection string's defaults want none
    export PGX_TEST_TLS_CONN_STRING="$tls channel_binding=disable"
    export PGX_TEST_SCRAM_PLUS_CONN_STRING="$tls channel_binding=require"
    ;;
pq)
    "${psql[@]}" --command 'create role pqgo superuser login' --command 'create database pqgo owner pqgo'
    # Its script for the server is one for the shell, which writes pg_hba.conf.
    sed --silent '/^create role/,$p' testdata/postgres/docker-entrypoint-initdb.d/* | "${psql[@]}"
    export PGUSER=pqgo PGDATABASE=pqgo
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
# Whatever fails is in the report. Tests of listeners wait for a tenth of a second
# and end the process if that was too short: the others go on without them.
for tests in '-skip=Listener' '-run=Listener'; do
    go test -json -parallel 1 "$tests" ./... || true
done >"$output/gotest.json"
