#!/usr/bin/env bash
# Runs go test on each version of PostgreSQL in package.json, with the arguments
# given. Nothing that is downloaded stays.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp --directory)
trap 'rm -r "$work"' EXIT
chmod 755 "$work" # the server runs as a user of its own
cp .npmrc package.json package-lock.json "$work"
(cd "$work" && npm ci --ignore-scripts --no-audit --no-fund)

for package in "$work"/node_modules/postgresql-*; do
    # All that its install script does.
    (cd "$package" && node scripts/hydrate-symlinks.js)
    bin=$package/native/bin
    echo "--- $("$bin/postgres" --version)"
    # These binaries come without pg_dump.
    (cd ../.. && RWPROXY_TEST_PG_BIN=$bin go test -skip 'TestFlowsSurviveDumpAndRestore' "$@")
done
