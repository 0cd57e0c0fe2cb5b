#!/usr/bin/env bash
# Installs what the foreign clients of the integration tests need, and the
# balancer, on Debian 12.
# Packages that are there already are left alone.
set -euo pipefail
cd "$(dirname "$0")"

packages=()
for package in python3-psycopg libpostgresql-jdbc-java; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
        packages+=("$package")
done
command -v haproxy >/dev/null || packages+=(haproxy)
command -v psql >/dev/null || packages+=(postgresql-client)
command -v javac >/dev/null || packages+=(default-jdk-headless)
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)

if ((${#packages[@]})); then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install --yes --no-install-recommends "${packages[@]}"
fi

# npm writes its own lock file when it is done.
if [[ ! node/node_modules/.package-lock.json -nt node/package-lock.json ]]; then
    (cd node && npm ci --ignore-scripts --no-audit --no-fund)
fi
