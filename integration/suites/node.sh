#!/usr/bin/env bash
# The tests of two of node-postgres's packages: see the README. In these versions
# npm has the tests too, which fit this version of pg.
set -euo pipefail
usage='usage: node.sh prepare DIR, or node.sh pg-pool|pg-cursor DIR OUTPUT'
suite=${1:?$usage} source=$(realpath "${2:?$usage}")

case $suite in
prepare)
    npm install --prefix "$source" --ignore-scripts --no-audit --no-fund \
        pg@8.11.0 pg-pool@3.6.0 pg-cursor@2.0.0 \
        mocha@10.8.2 expect.js@0.3.1 lodash@4.17.21 bluebird@3.4.1 co@4.6.0
    ;;
pg-pool | pg-cursor)
    output=$(realpath "${3:?$usage}")
    cd "$source/node_modules/$suite"
    exec ../.bin/mocha --exit --timeout 30000 \
        --reporter xunit --reporter-option "output=$output/junit.xml" test/*.js
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
