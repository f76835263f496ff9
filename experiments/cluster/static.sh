#!/bin/bash
# A cluster of hosts you log in to. Each needs the same Python minor version, 'tilewright[ray]' and
# the same file ~/.ray/auth_token, which `ray get-auth-token --generate` makes on the first.
#
#   static.sh head 10.0.0.1                     on the first host
#   static.sh join 10.0.0.1 [--num-gpus 8 ...]  on each other
#   tilewright tune ... --executor ray --address 10.0.0.1:6379
set -euo pipefail
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
role=$1 head=$2
shift 2
case $role in
head) exec ray start --head --node-ip-address="$head" --port="${RAY_PORT:-6379}" \
    --include-dashboard=false "$@" ;;
join) exec ray start --address="$head:${RAY_PORT:-6379}" "$@" ;;
*) echo "static.sh: role '$role' is unknown; allowed: head, join" >&2; exit 2 ;;
esac
