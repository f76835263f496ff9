"""Our tuner against TVM MetaSchedule: same machine, same number of trials, one process."""
