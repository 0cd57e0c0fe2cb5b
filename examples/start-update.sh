#!/usr/bin/env bash
# Refreshes the flows of a database through the REST API, and waits:
#
#     RWPROXY_API=https://rwproxy.example.com:6433 RWPROXY_TOKEN=… \
#         ./start-update.sh PIPELINE [FLOW PREDICATE]...
#
# PIPELINE is the name or the id of the database. Each FLOW is refreshed with its
# PREDICATE this once, all others with their own. It prints the events of the update,
# and exits with 0 if the update is complete. Needs curl and jq.
set -euo pipefail

pipeline=$(jq --null-input --raw-output --arg name "$1" '$name | @uri')
shift
address=${RWPROXY_API:-http://127.0.0.1:6433}/api/2.0/pipelines/$pipeline

# call METHOD PATH [OPTION]... makes a call with options of curl's. The token is not
# on the command line, where everybody could read it.
call() {
    local answer
    if ! answer=$(curl --silent --show-error --fail-with-body --request "$1" "$address$2" "${@:3}" \
        --header @<(printf 'Authorization: Bearer %s\n' "$RWPROXY_TOKEN")); then
        jq --raw-output '.message // empty' <<<"$answer" >&2
        return 1
    fi
    printf '%s\n' "$answer"
}

body=$(jq --null-input '$ARGS.positional as $words | {
    cause: "API_CALL",
    replace_where_overrides: [
        range(0; $words | length; 2) | {flow_name: $words[.], predicate_override: $words[. + 1]}
    ]
}' --args "$@")
update=$(call POST /updates --json "$body" | jq --raw-output .update_id)
echo "update $update"

state=
until [[ $state == COMPLETED || $state == FAILED || $state == CANCELED ]]; do
    sleep 0.5
    state=$(call GET "/updates/$update" | jq --raw-output .update.state)
done

page=(--data-urlencode "filter=update_id = '$update'" --data-urlencode 'order_by=timestamp asc')
while ((${#page[@]})); do
    events=$(call GET /events --get --data max_results=100 "${page[@]}")
    jq --raw-output '.events[] | "\(.timestamp) \(.level) \(.message)"' <<<"$events"
    next=$(jq --raw-output '.next_page_token // empty' <<<"$events")
    page=()
    if [[ $next ]]; then page=(--data-urlencode "page_token=$next"); fi
done

[[ $state == COMPLETED ]]
