#!/usr/bin/env bash
# The tests of node-postgres's package pg against a server, from the checkout of
# its repository in NODE_POSTGRES_SOURCE, run with npm's pg: see the README. A file
# counts as one test.
set -euo pipefail
usage='usage: node-postgres.sh prepare DIR, or node-postgres.sh node-postgres DIR OUTPUT'
suite=${1:?$usage} source=$(realpath "${2:?$usage}")

case $suite in
prepare)
    version=$(node --print 'require(process.argv[1]).version' "$NODE_POSTGRES_SOURCE/packages/pg/package.json")
    npm install --prefix "$source" --ignore-scripts --no-audit --no-fund \
        "pg@$version" async@2.6.4 bluebird@3.7.2 co@4.6.0 pg-copy-streams@0.3.0
    cp -r "$NODE_POSTGRES_SOURCE/packages/pg/test" "$source/node_modules/pg"
    ;;
node-postgres)
    output=$(realpath "${3:?$usage}")
    cd "$source/node_modules/pg"
    {
        echo '<testsuite>'
        find test/integration -name '*-tests.js' | sort | while read -r file; do
            failure=
            timeout 60 node "$file" "postgres://$PGUSER@$PGHOST:$PGPORT/$PGDATABASE" \
                </dev/null >&2 || failure='<failure/>'
            echo "<testcase classname=\"pg\" name=\"$file\">$failure</testcase>"
        done
        echo '</testsuite>'
    } >"$output/junit.xml"
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
