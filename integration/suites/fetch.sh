#!/usr/bin/env bash
# Puts PostgreSQL's own tests, its folder src/test, into the folder DIR, from
# Debian's source package of postgresql-15. The system's package sources and lists
# stay as they are.
set -euo pipefail
target=${1:?usage: fetch.sh DIR}
package=postgresql-15

work=$(mktemp --directory)
trap 'rm -r "$work"' EXIT
chmod 755 "$work" # apt downloads as a user of its own
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,package}

# The sources that this system already has, for source packages.
shopt -s nullglob
for file in /etc/apt/sources.list.d/*.sources; do
    sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}"
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -e $file ]] || continue
    { grep -E '^deb[[:space:]]' "$file" || true; } | sed 's/^deb/deb-src/' >"$work/sources/${file##*/}"
done

options=(
    --option Dir::Etc::sourcelist=/dev/null
    --option Dir::Etc::sourceparts="$work/sources"
    --option Dir::State::lists="$work/lists"
    --option Dir::Cache="$work/cache"
)
apt-get --quiet "${options[@]}" update >&2

# The installed version if there is a source package of it, else the newest one:
# a mirror may list versions that it no longer has, or does not have yet.
installed=$(dpkg-query --show --showformat='${source:Version}' "$package")
listed=$(apt-cache "${options[@]}" showsrc --only-source "$package" | sed -n 's/^Version: //p' | sort --version-sort --reverse)
for version in "$installed" $listed; do
    if (cd "$work/package" && apt-get --quiet "${options[@]}" source --download-only "$package=$version" >&2); then
        echo "$package $version" >&2
        break
    fi
done

archives=("$work"/package/*.orig.tar.*)
if ((${#archives[@]} == 0)); then
    echo "fetch.sh: no source package of $package could be downloaded" >&2
    exit 1
fi
mkdir -p "$target"
tar --extract --file "${archives[0]}" --directory "$target" \
    --strip-components 3 --wildcards '*/src/test/regress' '*/src/test/isolation'
