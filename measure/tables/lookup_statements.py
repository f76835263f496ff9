"""The statements of a look-up, made by ``measure.tables.compiling``. ``{versions}`` stands for the
parameters of the versions of templates."""

HEAD = "0008"
SCHEMA = """\
SELECT version_num FROM tilewright_schema
"""
PROGRAMS = """\
SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name FROM sqlite_master
WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'
"""
TRIALS = """\
SELECT pairs.trials FROM pairs JOIN workloads ON pairs.workload_id = workloads.id JOIN targets
ON pairs.target_id = targets.id WHERE workloads."key" = :workload AND targets.fingerprint =
:target
"""
VERSIONS = """\
SELECT measurements.template_version, count(*) AS count_1 FROM measurements JOIN pairs ON
measurements.pair_id = pairs.id JOIN workloads ON pairs.workload_id = workloads.id JOIN targets
ON pairs.target_id = targets.id WHERE workloads."key" = :workload AND targets.fingerprint =
:target AND measurements.status != 'lost' GROUP BY measurements.template_version
"""
IN_FULL = """\
SELECT measurements.id, measurements.schedule_digest, measurements.template_version,
measurements.status, measurements.score, measurements.clock, measurements.round,
measurements.error_kind, measurements.error_text, measurements.build_seconds,
measurements.run_seconds, measurements.started_at, measurements.recorded_at, measurements.run,
measurements.doubted, measurements.schedule, measurements.samples,
measurements.reference_samples, measurements.info, measurements.host, measurements.device,
measurements.toolchain, measurements.origin, measurements.place_in_run,
measurements.predicted_mean, measurements.predicted_spread FROM measurements WHERE
measurements.pair_id = (SELECT pairs.id FROM pairs JOIN workloads ON pairs.workload_id =
workloads.id JOIN targets ON pairs.target_id = targets.id WHERE workloads."key" = :workload AND
targets.fingerprint = :target) AND measurements.rank_score IS NOT NULL AND NOT (EXISTS (SELECT *
FROM measurements AS since WHERE since.pair_id = measurements.pair_id AND since.schedule_digest
= measurements.schedule_digest AND since.id > measurements.id AND (since.round != 'search' OR
since.round = measurements.round) AND since.status != 'lost' AND since.doubted IS 0 AND
since.template_version IN ({versions}))) AND measurements.template_version IN ({versions}) AND
NOT (measurements.round != 'final' AND measurements.id < coalesce((SELECT max(final.id) AS max_1
FROM measurements AS final WHERE final.pair_id = (SELECT pairs.id FROM pairs JOIN workloads ON
pairs.workload_id = workloads.id JOIN targets ON pairs.target_id = targets.id WHERE
workloads."key" = :workload AND targets.fingerprint = :target) AND final.round = 'final' AND
final.status = 'ok' AND final.doubted IS 0 AND final.template_version IN ({versions})), 0))
ORDER BY measurements.doubted, measurements.rank_score, measurements.id LIMIT :limit OFFSET
:offset
"""
PASSED_OVER = """\
SELECT measurements.id, measurements.schedule_digest, measurements.template_version,
measurements.status, measurements.score, measurements.clock, measurements.round,
measurements.error_kind, measurements.error_text, measurements.build_seconds,
measurements.run_seconds, measurements.started_at, measurements.recorded_at, measurements.run,
measurements.doubted, measurements.schedule, measurements.samples,
measurements.reference_samples, measurements.info, measurements.host, measurements.device,
measurements.toolchain, measurements.origin, measurements.place_in_run,
measurements.predicted_mean, measurements.predicted_spread FROM measurements WHERE
measurements.pair_id = (SELECT pairs.id FROM pairs JOIN workloads ON pairs.workload_id =
workloads.id JOIN targets ON pairs.target_id = targets.id WHERE workloads."key" = :workload AND
targets.fingerprint = :target) AND measurements.rank_score IS NOT NULL AND NOT (EXISTS (SELECT *
FROM measurements AS since WHERE since.pair_id = measurements.pair_id AND since.schedule_digest
= measurements.schedule_digest AND since.id > measurements.id AND (since.round != 'search' OR
since.round = measurements.round) AND since.status != 'lost' AND since.doubted IS 0 AND
since.template_version IN ({versions}))) AND measurements.template_version IN ({versions}) AND
measurements.round != 'final' AND measurements.id < coalesce((SELECT max(final.id) AS max_1 FROM
measurements AS final WHERE final.pair_id = (SELECT pairs.id FROM pairs JOIN workloads ON
pairs.workload_id = workloads.id JOIN targets ON pairs.target_id = targets.id WHERE
workloads."key" = :workload AND targets.fingerprint = :target) AND final.round = 'final' AND
final.status = 'ok' AND final.doubted IS 0 AND final.template_version IN ({versions})), 0) ORDER
BY measurements.doubted, measurements.rank_score, measurements.id LIMIT :limit OFFSET :offset
"""
