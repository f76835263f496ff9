#!/bin/bash
# A tuning job on Slurm: the first node of the allocation is the head and runs the driver.
# Needs a folder that all nodes share, with a virtual environment (.venv) of 'tilewright[ray,cuda]'.
# Each job has a database of its own, for hosts must not write to one SQLite file at the same time:
#
#   sbatch slurm.sh matmul m=4096 n=4096 k=4096 dtype=bfloat16 --target cuda --seconds 3000
#   tilewright db merge tuning-*.db --into team.db
#SBATCH --job-name=tilewright
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
set -euo pipefail
source .venv/bin/activate

export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
export RAY_AUTH_TOKEN_PATH=$PWD/.ray-token-$SLURM_JOB_ID
(umask 077 && head -c 32 /dev/urandom | sha256sum | cut -d' ' -f1 > "$RAY_AUTH_TOKEN_PATH")
trap 'rm -f "$RAY_AUTH_TOKEN_PATH"' EXIT

read -r head < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
read -r host < <(srun --overlap --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | tr ' ' '\n' | grep -v -e : -e ^127.) ||
    { echo "slurm.sh: the name of $head has no IPv4 address that other nodes reach" >&2; exit 1; }
address=$host:6379
srun --overlap --nodes=1 --ntasks=1 -w "$head" ray start --head --node-ip-address="$host" --port=6379 --block &
until (exec 3<> "/dev/tcp/$host/6379") 2> /dev/null; do
    kill -0 $! 2> /dev/null || { echo "slurm.sh: no head of a Ray cluster starts on $head" >&2; exit 1; }
    sleep 1
done
if (( SLURM_JOB_NUM_NODES > 1 )); then
    srun --overlap --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks-per-node=1 --exclude="$head" \
        ray start --address="$address" --block &
fi
srun --overlap --nodes=1 --ntasks=1 -w "$head" tilewright tune "$@" \
    --executor ray --address "$address" --db "tuning-$SLURM_JOB_ID.db"
