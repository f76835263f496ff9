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
INSERT INTO "measurements" VALUES(1,'37fc6391b31562fee467e16b1fbed17298ad4e4bae6f67fde524c809fcdb027b',1,'contraction.1','fbc92d2b5e86f6b920f94dda5fd172688d3ca4c31e721eec766d1bcb63238ced','{"decisions":{"mc":16,"order":"mnk","packed":true},"template":"contraction"}','ok','final',0,0.00125,0.00125,'[0.00125,0.0013,0.30000000000000004]','[0.002]','cpu',NULL,'',0.054,0.03,1.79516978501307153696e+09,1795169786.25,'monday',NULL,NULL,NULL,NULL,'','','','{"notes":["a",null,true],"registers":30}');
INSERT INTO "measurements" VALUES(2,'712a66765b3af182d863d940ca5d11b35396576e4be25056878a9628e1c67e26',1,'contraction.1','8bb892245a7b145b632c72c0e0bb4bba4a9a93230f68387e5a1a915a73c543d7','{"decisions":{"mc":32,"order":"mnk","packed":true},"template":"contraction"}','error','search',0,NULL,NULL,'[]','[]','','crash','signal 11 in "task"
Zürich',0.054,0.0,1795169787.5,1795169788.0,'monday',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(3,'986ff57f26b7b6b59f1c6d99ee157d878a7f32047c09bc56fd987684abf272d3',2,'contraction.1','3bb93ff51fc31fd2881594bb2cbf4774b9e6b9d7a2353023521ea5f6cd7e58b5','{"decisions":{"mc":64,"order":"mnk","packed":true},"template":"contraction"}','slow','search',0,NULL,0.5,'[0.5]','[]','wall',NULL,'',0.06,0.5,1795169790.0,1795169791.0,'',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(4,'e7a243e65ba21ace68b6da337af2ce6eeecab71f9ffde076e97f30f08471e610',1,'contraction.2','e866447328c505335cc2937b5bb79a6b781be345d301ca48cdf31d40169cd72a','{"decisions":{"mc":3,"order":"mnk","packed":true},"template":"contraction"}','ok','search',1,0.0022,0.002,'[0.002,0.0022]','[0.001]','cpu',NULL,'',0.0,0.0,1795399999.0,1795400000.5,'9af0','evolved',17,3.00000000000000044408e-01,0.05,'node7','GPU 3','gcc 12.2.0','{"registers":30}');
INSERT INTO "measurements" VALUES(5,'c266cf9420b17db3a1c88c0765eae7d5a4e102bd1b61ecb05b35146cfff7ca21',1,'contraction.2','372f50dc8ea08c1351e6bbe202e0e2a77aa951bfc3a678a8febd8f810dee24e5','{"decisions":{"mc":4,"order":"mnk","packed":true},"template":"contraction"}','lost','search',0,NULL,NULL,'[]','[]','','device_error','',0.0,0.0,1795399999.5,1795400000.5,'9af0','random',18,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(6,'a93dbd4e5dec5a054e4f14606a2cbaeafbeffc3a9e97eeefc7e477c8be695f6a',3,'contraction.1','2d09c9f65b3689f788dcfa54e57e02bfe6169d3935e8189b98dc675540983880','{"decisions":{"mc":21,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,2.31000000000000042105e-03,2.10000000000000030392e-03,'[0.0021000000000000003,0.0023100000000000004]','[0.001]','cpu',NULL,'',0.0,0.0,21.0,1.79546027704299592971e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(7,'9bbeea614b6ffec5e5847e0929564ec94ee478823cb3c43dd0a56e9062f7afec',4,'contraction.1','fb211c745926b44974c9284bb31652967c70c116cadd84079474b47034cd7df8','{"decisions":{"mc":22,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,2.42000000000000027589e-03,0.0022,'[0.0022,0.0024200000000000003]','[0.001]','cpu',NULL,'',0.0,0.0,22.0,1.79546027707366275785e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(8,'3ab5e28c342a3069c532b5de07c88dfd4c482fc155a856267072a67e83d86aa9',5,'contraction.1','d877fd9137f522cf3b6d9e40ae6420e10ae1bb44dbfe494f48beb30cda63b69f','{"decisions":{"mc":23,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.00253,0.0023,'[0.0023,0.00253]','[0.001]','cpu',NULL,'',0.0,0.0,23.0,1.79546027708597064021e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(9,'fee05fdf455dcb44b20a9bb98b6ee7d024b95a948e32e0b6fb629dd27baf8fbf',6,'contraction.1','4cc8b6dd41e372c3412e6b6a02487c7677f7e041ebcdfe5a93ffe2a9a190ab85','{"decisions":{"mc":24,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,2.64000000000000041924e-03,2.40000000000000022343e-03,'[0.0024000000000000002,0.0026400000000000004]','[0.001]','cpu',NULL,'',0.0,0.0,24.0,1.79546027710635471346e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(10,'95ae7a065016355194a4d66765bf31da231f9d408e3275fad34f618032b34a06',7,'contraction.1','d19675782c4dfd57e6b764092595f9dc09af8f8721f0797c532a6a0fa79b393e','{"decisions":{"mc":25,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,2.75000000000000027408e-03,0.0025,'[0.0025,0.0027500000000000003]','[0.001]','cpu',NULL,'',0.0,0.0,25.0,1.79546027712386822698e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(11,'732ba4e650eaa7e4b9ac9f675a1aa5bd7cabe6d0d26b2d4be3759fcf26794e61',7,'contraction.1','44b427f5b77a7c9b2dcb978fc9afe9b546768a08e7b3e6e498ef371a0e8a766a','{"decisions":{"mc":26,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,2.8600000000000005626e-03,2.60000000000000031433e-03,'[0.0026000000000000003,0.0028600000000000006]','[0.001]','cpu',NULL,'',0.0,0.0,26.0,1.79546027714573359487e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(12,'e73441f0a10b75924c5278eb572bcac08402f27b6b4e6015acaf4cc85dddb4a1',8,'contraction.1','0d39fbb97947f154ebef57fbeba7693904fc48537e8953009c8054e23c287944','{"decisions":{"mc":31,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0011,0.001,'[0.001,0.0011]','[0.001]','cpu',NULL,'',0.0,0.0,31.0,1.79546027716174983975e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(13,'53d89945d7a082ee8c6d23da29c979f04a46d2ca672884700eed674b87623b00',9,'contraction.1','0d39fbb97947f154ebef57fbeba7693904fc48537e8953009c8054e23c287944','{"decisions":{"mc":31,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0011,0.001,'[0.001,0.0011]','[0.001]','cpu',NULL,'',0.0,0.0,32.0,1.7954602771847510338e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
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
INSERT INTO "pairs" VALUES(1,1,1,3,1,1);
INSERT INTO "pairs" VALUES(2,2,2,1,0,0);
INSERT INTO "pairs" VALUES(3,3,1,1,0,0);
INSERT INTO "pairs" VALUES(4,4,1,1,0,0);
INSERT INTO "pairs" VALUES(5,5,1,1,0,0);
INSERT INTO "pairs" VALUES(6,6,1,1,0,0);
INSERT INTO "pairs" VALUES(7,7,1,2,0,0);
INSERT INTO "pairs" VALUES(8,8,1,1,0,0);
INSERT INTO "pairs" VALUES(9,9,1,1,0,0);
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
INSERT INTO "runs" VALUES(1,'9af0',1,'nightly','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1795399990.25,1795400000.5,1795400000.5,'trials',64.5,2.0e-05);
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
INSERT INTO "tilewright_schema" VALUES('0006');
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	operator VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, family TEXT DEFAULT '{}' NOT NULL, extents TEXT DEFAULT '{}' NOT NULL, text TEXT DEFAULT '' NOT NULL, flops DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "workloads" VALUES(1,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue=ea7ed0f1e7c3cb2a','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"relu(x + bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"ea7ed0f1e7c3cb2a","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="relu(x + bias[n])"',1572864.0);
INSERT INTO "workloads" VALUES(2,'matmul m=1 n=4096 k=4096 dtype=bfloat16 out=float32 a=row b=col c=row','matmul','{"operator":"matmul","parameters":{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","k":4096,"m":1,"n":4096,"out":"float32"}}','{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","out":"float32"}','{"k":4096,"m":1,"n":4096}','matmul m=1 n=4096 k=4096 dtype=bfloat16 out=float32 a=row b=col c=row',33554432.0);
INSERT INTO "workloads" VALUES(3,'program 1d59ca0768e95da3','program','{"operator":"program","parameters":{"m":8,"text":"y[m] = -(a[m] + b[m]) * c[m]"},"program":["axes m=8","a: float32[8]","b: float32[8]","c: float32[8]","y[m] = -(a[m] + b[m]) * c[m]","y: float32[8]","-> y"]}','{"a":"float32","b":"float32","c":"float32","stages":"y[m] = -(a[m] + b[m]) * c[m]","y":"float32"}','{"m":8}','"y[m] = -(a[m] + b[m]) * c[m]" m=8',0.0);
INSERT INTO "workloads" VALUES(4,'program b4e869002daeeb80','program','{"operator":"program","parameters":{"m":8,"text":"y[m] = -((a[m] + b[m]) * c[m])"},"program":["axes m=8","a: float32[8]","b: float32[8]","c: float32[8]","y[m] = -((a[m] + b[m]) * c[m])","y: float32[8]","-> y"]}','{"a":"float32","b":"float32","c":"float32","stages":"y[m] = -((a[m] + b[m]) * c[m])","y":"float32"}','{"m":8}','"y[m] = -((a[m] + b[m]) * c[m])" m=8',0.0);
INSERT INTO "workloads" VALUES(5,'program 5e5fd77487aaf316','program','{"operator":"program","parameters":{"i":8,"r":4,"text":"x: float32[40]; y[i] = sum[r](w[r] * x[2 * (i + r)])"},"program":["axes i=8, r=4","x: float32[40]","w: float32[4]","y[i] = sum[r](w[r] * x[2 * (i + r)])","y: float32[8]","-> y"]}','{"stages":"y[i] = sum[r](w[r] * x[2 * (i + r)])","w":"float32","x":"float32","y":"float32"}','{"i":8,"r":4}','"x: float32[40]; y[i] = sum[r](w[r] * x[2 * (i + r)])" i=8 r=4',64.0);
INSERT INTO "workloads" VALUES(6,'program 304964e37a9c54fc','program','{"operator":"program","parameters":{"i":8,"r":4,"text":"x: float32[40]; y[i] = sum[r](w[r] * x[2 * i + 2 * r])"},"program":["axes i=8, r=4","x: float32[40]","w: float32[4]","y[i] = sum[r](w[r] * x[2 * i + 2 * r])","y: float32[8]","-> y"]}','{"stages":"y[i] = sum[r](w[r] * x[2 * i + 2 * r])","w":"float32","x":"float32","y":"float32"}','{"i":8,"r":4}','"x: float32[40]; y[i] = sum[r](w[r] * x[2 * i + 2 * r])" i=8 r=4',64.0);
INSERT INTO "workloads" VALUES(7,'program bff945ca3ba49a74','program','{"operator":"program","parameters":{"m":8,"text":"y[m] = max(a[m], max(b[m], c[m]))"},"program":["axes m=8","a: float32[8]","b: float32[8]","c: float32[8]","y[m] = max(a[m], max(b[m], c[m]))","y: float32[8]","-> y"]}','{"a":"float32","b":"float32","c":"float32","stages":"y[m] = max(a[m], max(b[m], c[m]))","y":"float32"}','{"m":8}','"y[m] = max(a[m], max(b[m], c[m]))" m=8',0.0);
INSERT INTO "workloads" VALUES(8,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue=0b5562145e6b0915','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"max(x, max(bias[n], 0.5))","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"0b5562145e6b0915","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="max(x, max(bias[n], 0.5))"',1572864.0);
INSERT INTO "workloads" VALUES(9,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue=f1696b4ad52be091','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"max(max(0.5, x), bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"f1696b4ad52be091","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="max(max(0.5, x), bias[n])"',1572864.0);
CREATE INDEX ix_workloads_operator ON workloads (operator);
CREATE INDEX ix_pairs_target_id ON pairs (target_id);
CREATE INDEX ix_runs_session ON runs (session);
CREATE INDEX best_known ON measurements (pair_id, doubted, rank_score, id) WHERE rank_score IS NOT NULL;
CREATE INDEX attempts_of_schedule ON measurements (pair_id, schedule_digest, round);
CREATE INDEX measurements_of_run ON measurements (run);
CREATE INDEX comparisons ON measurements (pair_id, id) WHERE round = 'final';
COMMIT;
