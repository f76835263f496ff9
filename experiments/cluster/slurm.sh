#!/bin/bash
# A tuning job on Slurm: the first node of the allocation is the head and runs the driver.
# Needs a folder that all nodes share, with a virtual environment (.venv) of 'tilewright[ray,cuda]'.
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

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address | cut -d' ' -f1):6379
srun --overlap --nodes=1 --ntasks=1 -w "$head" \
    ray start --head --node-ip-address="${address%:*}" --port="${address##*:}" --block &
until (exec 3<> "/dev/tcp/${address/://}") 2> /dev/null; do sleep 1; done
if (( SLURM_JOB_NUM_NODES > 1 )); then
    srun --overlap --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks-per-node=1 --exclude="$head" \
        ray start --address="$address" --block &
fi
srun --overlap --nodes=1 --ntasks=1 -w "$head" tilewright tune "$@" \
    --executor ray --address "$address" --db tuning.db
