BEGIN TRANSACTION;
CREATE TABLE measurements (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	pair_id INTEGER NOT NULL, 
	template_version TEXT NOT NULL, 
	schedule_digest VARCHAR(64) NOT NULL, 
	schedule TEXT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	round VARCHAR(16) NOT NULL, 
	doubted BOOLEAN NOT NULL, 
	rank_score DOUBLE, 
	score DOUBLE, 
	samples TEXT NOT NULL, 
	reference_samples TEXT NOT NULL, 
	clock TEXT NOT NULL, 
	error_kind VARCHAR(32), 
	error_text TEXT NOT NULL, 
	build_seconds DOUBLE NOT NULL, 
	run_seconds DOUBLE NOT NULL, 
	started_at DOUBLE NOT NULL, 
	recorded_at DOUBLE NOT NULL, 
	run TEXT NOT NULL, 
	origin TEXT, 
	place_in_run BIGINT, 
	predicted_mean DOUBLE, 
	predicted_spread DOUBLE, 
	host TEXT NOT NULL, 
	device TEXT NOT NULL, 
	toolchain TEXT NOT NULL, 
	info TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key"), 
	FOREIGN KEY(pair_id) REFERENCES pairs (id)
);
INSERT INTO "measurements" VALUES(1,'37fc6391b31562fee467e16b1fbed17298ad4e4bae6f67fde524c809fcdb027b',2,'contraction.1','fbc92d2b5e86f6b920f94dda5fd172688d3ca4c31e721eec766d1bcb63238ced','{"decisions":{"mc":16,"order":"mnk","packed":true},"template":"contraction"}','ok','final',0,0.00125,0.00125,'[0.00125,0.0013,0.30000000000000004]','[0.002]','cpu',NULL,'',0.054,0.03,1.79516978501307153696e+09,1795169786.25,'monday',NULL,NULL,NULL,NULL,'','','','{"notes":["a",null,true],"registers":30}');
INSERT INTO "measurements" VALUES(2,'712a66765b3af182d863d940ca5d11b35396576e4be25056878a9628e1c67e26',2,'contraction.1','8bb892245a7b145b632c72c0e0bb4bba4a9a93230f68387e5a1a915a73c543d7','{"decisions":{"mc":32,"order":"mnk","packed":true},"template":"contraction"}','error','search',0,NULL,NULL,'[]','[]','','crash','signal 11 in "task"
Zürich',0.054,0.0,1795169787.5,1795169788.0,'monday',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(3,'986ff57f26b7b6b59f1c6d99ee157d878a7f32047c09bc56fd987684abf272d3',1,'contraction.1','3bb93ff51fc31fd2881594bb2cbf4774b9e6b9d7a2353023521ea5f6cd7e58b5','{"decisions":{"mc":64,"order":"mnk","packed":true},"template":"contraction"}','slow','search',0,NULL,0.5,'[0.5]','[]','wall',NULL,'',0.06,0.5,1795169790.0,1795169791.0,'',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(4,'e7a243e65ba21ace68b6da337af2ce6eeecab71f9ffde076e97f30f08471e610',2,'contraction.2','e866447328c505335cc2937b5bb79a6b781be345d301ca48cdf31d40169cd72a','{"decisions":{"mc":3,"order":"mnk","packed":true},"template":"contraction"}','ok','search',1,0.0022,0.002,'[0.002,0.0022]','[0.001]','cpu',NULL,'',0.0,0.0,1795399999.0,1795400000.5,'9af0','evolved',17,3.00000000000000044408e-01,0.05,'node7','GPU 3','gcc 12.2.0','{"registers":30}');
INSERT INTO "measurements" VALUES(5,'c266cf9420b17db3a1c88c0765eae7d5a4e102bd1b61ecb05b35146cfff7ca21',2,'contraction.2','372f50dc8ea08c1351e6bbe202e0e2a77aa951bfc3a678a8febd8f810dee24e5','{"decisions":{"mc":4,"order":"mnk","packed":true},"template":"contraction"}','lost','search',0,NULL,NULL,'[]','[]','','device_error','',0.0,0.0,1795399999.5,1795400000.5,'9af0','random',18,NULL,NULL,'','','','{}');
CREATE TABLE pairs (
	id INTEGER NOT NULL, 
	workload_id INTEGER NOT NULL, 
	target_id INTEGER NOT NULL, 
	trials BIGINT NOT NULL, 
	failures BIGINT NOT NULL, 
	lost BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (workload_id, target_id), 
	FOREIGN KEY(workload_id) REFERENCES workloads (id), 
	FOREIGN KEY(target_id) REFERENCES targets (id)
);
INSERT INTO "pairs" VALUES(1,1,2,1,0,0);
INSERT INTO "pairs" VALUES(2,2,1,3,1,1);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	pair_id INTEGER NOT NULL, 
	session TEXT NOT NULL, 
	command TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	configuration TEXT NOT NULL, 
	versions TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	heartbeat DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	reason TEXT NOT NULL, 
	peak_gflops DOUBLE, 
	library_seconds DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE ("key"), 
	FOREIGN KEY(pair_id) REFERENCES pairs (id)
);
INSERT INTO "runs" VALUES(1,'9af0',2,'nightly','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1795399990.25,1795400000.5,1795400000.5,'trials',64.5,2.0e-05);
CREATE TABLE targets (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (fingerprint)
);
INSERT INTO "targets" VALUES(1,'acb95b26f0763eeb45ef041fe001974c','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"12.2.0","cores":4,"flags":["-O2","-march=native"],"fma":true,"isa":"avx2","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":16777216,"model":"Example CPU","threads":1,"vector_bytes":32,"vector_registers":16}');
INSERT INTO "targets" VALUES(2,'d13a80108c972fc6c1936d9893d69e1e','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"12.2.0","cores":4,"flags":["-O2","-march=native"],"fma":true,"isa":"avx512","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":16777216,"model":"Example CPU","threads":2,"vector_bytes":64,"vector_registers":16}');
CREATE TABLE tilewright_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT tilewright_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "tilewright_schema" VALUES('0005');
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	operator VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, family TEXT DEFAULT '{}' NOT NULL, extents TEXT DEFAULT '{}' NOT NULL, text TEXT DEFAULT '' NOT NULL, flops DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "workloads" VALUES(1,'matmul m=1 n=4096 k=4096 dtype=bfloat16 out=float32 a=row b=col c=row','matmul','{"operator":"matmul","parameters":{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","k":4096,"m":1,"n":4096,"out":"float32"}}','{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","out":"float32"}','{"k":4096,"m":1,"n":4096}','matmul m=1 n=4096 k=4096 dtype=bfloat16 out=float32 a=row b=col c=row',33554432.0);
INSERT INTO "workloads" VALUES(2,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue=ea7ed0f1e7c3cb2a','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"relu(x + bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"ea7ed0f1e7c3cb2a","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="relu(x + bias[n])"',1572864.0);
CREATE INDEX ix_workloads_operator ON workloads (operator);
CREATE INDEX ix_pairs_target_id ON pairs (target_id);
CREATE INDEX ix_runs_session ON runs (session);
CREATE INDEX best_known ON measurements (pair_id, doubted, rank_score, id) WHERE rank_score IS NOT NULL;
CREATE INDEX attempts_of_schedule ON measurements (pair_id, schedule_digest, round);
CREATE INDEX measurements_of_run ON measurements (run);
CREATE INDEX comparisons ON measurements (pair_id, id) WHERE round = 'final';
COMMIT;
