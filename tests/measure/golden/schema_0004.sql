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
INSERT INTO "measurements" VALUES(1,'3caca26d5087b0da4339344699214cabdd2596c16f5fcdd50f9a0d83f46b4234',1,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0044,0.004,'[0.004,0.0044]','[0.001]','cpu',NULL,'',0.0,0.0,1800000000.0,1800000001.0,'r1',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(2,'817f2aa9f1afcd0cf48ae7e08d3ef42ed2c14047c187c350aadff82624206b34',1,'contraction.1','89c2f30b0796372ad0f3cda3002f371f4271e83514892c9f19dea037aadf6607','{"decisions":{"mc":2,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,3.30000000000000041563e-03,0.003,'[0.003,0.0033000000000000004]','[0.001]','cpu',NULL,'',0.0,0.0,1800000001.0,1800000002.0,'r1',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(3,'846f29e68a2f2a35711767570e931bcd0e01df293d801fd13a3a5a702b5167b2',1,'contraction.1','e866447328c505335cc2937b5bb79a6b781be345d301ca48cdf31d40169cd72a','{"decisions":{"mc":3,"order":"mnk","packed":true},"template":"contraction"}','error','search',0,NULL,NULL,'[]','[]','','crash','signal 11',0.0,0.0,1800000002.0,1800000003.0,'r1',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(4,'200aea6cb92b7ece1db3489c49fbd1a74ce0da9d8092997dc716c99533419e14',2,'contraction.1','89c2f30b0796372ad0f3cda3002f371f4271e83514892c9f19dea037aadf6607','{"decisions":{"mc":2,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,3.41000000000000027047e-03,0.0031,'[0.0031,0.0034100000000000003]','[0.001]','cpu',NULL,'',0.0,0.0,1800000003.0,1800000004.0,'r2',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(5,'288596dd58821b94a0283887a12761fac3555a77bbfe655cb7442eb5a0d7c9dc',2,'contraction.1','372f50dc8ea08c1351e6bbe202e0e2a77aa951bfc3a678a8febd8f810dee24e5','{"decisions":{"mc":4,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0011,0.001,'[0.001,0.0011]','[0.001]','cpu',NULL,'',0.0,0.0,1800000004.0,1800000005.0,'r2',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(6,'5273731736301712adb1e6a2ac76a08bea221aeed143fef7cd3635d9e70a883f',2,'contraction.1','7e60c99f0fcaee6b6cc4ca5cc7ed46981e44d4c42c8371b3a0ba9478c77287c7','{"decisions":{"mc":5,"order":"mnk","packed":true},"template":"contraction"}','lost','search',0,NULL,NULL,'[]','[]','','device_error','',0.0,0.0,1800000005.0,1800000006.0,'r2',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(7,'df80e1c632d0d3595e90a47430852555ad796d3025814d7920e68c205faeeb07',3,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0022,0.002,'[0.002,0.0022]','[0.001]','cpu',NULL,'',0.0,0.0,1800000006.0,1800000007.0,'r3',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(8,'002e1187dec9b7b36a3e296bf7900c5b87010d8f30cba642792aa1f63d12caf3',3,'contraction.1','89c2f30b0796372ad0f3cda3002f371f4271e83514892c9f19dea037aadf6607','{"decisions":{"mc":2,"order":"mnk","packed":true},"template":"contraction"}','error','search',0,NULL,NULL,'[]','[]','','crash','signal 11',0.0,0.0,1800000007.0,1800000008.0,'r3',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(9,'f1e221e362e4d4a67fba0cd8f7f4df4846bc565b0111839a19a37ff0ceefb013',4,'contraction.1','a65fa430460459876dfdcc46998c5f56af44c9f3a31cb6fc2597648cc4c69514','{"decisions":{"mc":6,"order":"mnk","packed":true},"template":"contraction"}','ok','final',0,0.005,0.005,'[0.005,0.0055000000000000005]','[0.001]','cpu',NULL,'',0.0,0.0,1800000008.0,1800000009.0,'r4',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(10,'2c8be94a1d92a8fe1aa0da9ab13c6b6b6d1d104dd9957c05a21fec6927440373',4,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',1,0.0044,0.004,'[0.004,0.0044]','[0.001]','cpu',NULL,'',0.0,0.0,1800000000.0,1800000001.0,'r4',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(11,'84207e9b8651391d2c25e0c1b3ab67fb71f4d736c2997d855d725061b5231270',6,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,6.60000000000000083127e-03,0.006,'[0.006,0.006600000000000001]','[0.001]','cpu',NULL,'',0.0,0.0,1800000009.0,1800000010.0,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(12,'9a67bf59b3cd1adf15d7fc6717cc18fe7521d7152ab40a9fd6fe852138834f36',6,'contraction.1','89c2f30b0796372ad0f3cda3002f371f4271e83514892c9f19dea037aadf6607','{"decisions":{"mc":2,"order":"mnk","packed":true},"template":"contraction"}','error','search',0,NULL,NULL,'[]','[]','','crash','signal 11',0.0,0.0,1800000010.0,1800000011.0,'',NULL,NULL,NULL,NULL,'','','','{}');
INSERT INTO "measurements" VALUES(13,'9da71362cb3b1e9a6b141a5864c3ea27721f7ceb009ed8034dea6972f74a24d7',7,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.00055,0.0005,'[0.0005,0.00055]','[0.001]','cpu',NULL,'',0.0,0.0,1800000011.0,1800000012.0,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(14,'11f2d50e3a8a9dbfe87ed658193d73c62a665affee46c0a48c4be7259e0990ba',5,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.0022,0.002,'[0.002,0.0022]','[0.001]','cpu',NULL,'',0.0,0.0,1800000012.0,1800000013.0,'r5',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(15,'f4a4816570c61ae79c9f0223a1928c58f36d0f59c964b148e988f33397415bde',8,'contraction.1','5b1eb4d67bed1d6ac1e23cdc371e5c1f584fc01aca48a97d02a0f87918fa14a6','{"decisions":{"mc":1,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,3.30000000000000041563e-03,0.003,'[0.003,0.0033000000000000004]','[0.001]','cpu',NULL,'',0.0,0.0,1800000013.0,1800000014.0,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(16,'53fa3b81de0e8773d3b1100b6ffd0e89c66a7cb6f38aba688fd95839b55503f9',1,'contraction.1','1f84f6c3fce504615feb31a06e20448e4fac8d2d8de2c137030f76ee70c78156','{"decisions":{"mc":7,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,3.85000000000000055719e-03,0.0035,'[0.0035,0.0038500000000000006]','[0.001]','cpu',NULL,'',0.0,0.0,1800000014.0,1800000015.0,'r1',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
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
INSERT INTO "pairs" VALUES(1,1,1,4,1,0);
INSERT INTO "pairs" VALUES(2,2,1,2,0,1);
INSERT INTO "pairs" VALUES(3,2,2,2,1,0);
INSERT INTO "pairs" VALUES(4,3,1,2,0,0);
INSERT INTO "pairs" VALUES(5,4,1,1,0,0);
INSERT INTO "pairs" VALUES(6,5,1,2,1,0);
INSERT INTO "pairs" VALUES(7,6,1,1,0,0);
INSERT INTO "pairs" VALUES(8,7,1,1,0,0);
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
INSERT INTO "runs" VALUES(1,'r1',1,'s0','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1800000000.0,1.79535594743966603285e+09,NULL,'',64.5,2.0e-05);
INSERT INTO "runs" VALUES(2,'r2',2,'s1','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1800000001.0,1.79535594435690188403e+09,NULL,'',64.5,2.0e-05);
INSERT INTO "runs" VALUES(3,'r3',3,'s2','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1800000002.0,1.79535594464100384717e+09,NULL,'',64.5,2.0e-05);
INSERT INTO "runs" VALUES(4,'r4',4,'s3','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1800000003.0,1.79535594519138908386e+09,NULL,'',64.5,2.0e-05);
INSERT INTO "runs" VALUES(5,'r5',5,'s4','tilewright tune matmul m=64 n=96 k=128',7,'{"patience":null,"seconds":60.0,"trials":128}','{"python":"3.11.2","tilewright":"0.1.0"}',1800000004.0,1.79535594626687788964e+09,NULL,'',64.5,2.0e-05);
CREATE TABLE targets (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (fingerprint)
);
INSERT INTO "targets" VALUES(1,'acb95b26f0763eeb45ef041fe001974c','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"12.2.0","cores":4,"flags":["-O2","-march=native"],"fma":true,"isa":"avx2","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":16777216,"model":"Example CPU","threads":1,"vector_bytes":32,"vector_registers":16}');
INSERT INTO "targets" VALUES(2,'d7273164bfd44c147e8fdafc80377d12','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"12.2.0","cores":4,"flags":["-O2","-march=native"],"fma":true,"isa":"avx2","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":16777216,"model":"Example CPU","threads":2,"vector_bytes":32,"vector_registers":16}');
CREATE TABLE tilewright_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT tilewright_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "tilewright_schema" VALUES('0004');
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	operator VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, family TEXT DEFAULT '{}' NOT NULL, extents TEXT DEFAULT '{}' NOT NULL, text TEXT DEFAULT '' NOT NULL, flops DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "workloads" VALUES(1,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="x + bias[n] + residual[m,n]"','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"x + bias[n] + residual[m,n]","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"x + bias[n] + residual[m,n]","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="x + bias[n] + residual[m,n]"',1572864.0);
INSERT INTO "workloads" VALUES(2,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="residual[m,n] + (x + bias[n])"','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"residual[m,n] + (x + bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"residual[m,n] + (x + bias[n])","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="residual[m,n] + (x + bias[n])"',1572864.0);
INSERT INTO "workloads" VALUES(3,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="r[m,n] + x + b[n]"','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"r[m,n] + x + b[n]","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"r[m,n] + x + b[n]","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="r[m,n] + x + b[n]"',1572864.0);
INSERT INTO "workloads" VALUES(4,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row',1572864.0);
INSERT INTO "workloads" VALUES(5,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="gelu(x + bias[n])"','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"gelu(x + bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"gelu(x + bias[n])","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="gelu(x + bias[n])"',1572864.0);
INSERT INTO "workloads" VALUES(6,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="x + bias[m] + residual[m,n]"','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"x + bias[m] + residual[m,n]","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"x + bias[m] + residual[m,n]","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="x + bias[m] + residual[m,n]"',1572864.0);
INSERT INTO "workloads" VALUES(7,'program 8a323a19dd103ddb','program','{"operator":"program","parameters":{},"program":["axes r=64, c=96","x: float32[64, 96]","y_max[r] = max[c](x[r, c])","y_sum[r] = sum[c](exp(x[r, c] - y_max[r]))","y[r, c] = exp(x[r, c] - y_max[r]) / y_sum[r]","y: float32[64, 96]","-> y"]}','{"stages":"y_max[r] = max[c](x[r, c])\ny_sum[r] = sum[c](exp(x[r, c] - y_max[r]))\ny[r, c] = exp(x[r, c] - y_max[r]) / y_sum[r]","x":"float32","y":"float32"}','{"c":96,"r":64}','axes r=64, c=96; x: float32[64, 96]; y_max[r] = max[c](x[r, c]); y_sum[r] = sum[c](exp(x[r, c] - y_max[r])); y[r, c] = exp(x[r, c] - y_max[r]) / y_sum[r]; y: float32[64, 96]; -> y',0.0);
CREATE INDEX ix_workloads_operator ON workloads (operator);
CREATE INDEX ix_pairs_target_id ON pairs (target_id);
CREATE INDEX ix_runs_session ON runs (session);
CREATE INDEX best_known ON measurements (pair_id, doubted, rank_score, id) WHERE rank_score IS NOT NULL;
CREATE INDEX attempts_of_schedule ON measurements (pair_id, schedule_digest, round);
CREATE INDEX measurements_of_run ON measurements (run);
CREATE INDEX comparisons ON measurements (pair_id, id) WHERE round = 'final';
COMMIT;
