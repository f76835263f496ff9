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
INSERT INTO "measurements" VALUES(1,'fff8b612b680cd8bc9a2508ea27085a9471e417c71e1be8e72c4dd5750c4433d',1,'hopper.7','fa657a113c8f233a02a994cc1b99a0cb0256d5ca65ff4fefd3ab921b4bfaade4','{"decisions":{"block_m":128,"block_n":16,"cluster":"1x1","consumers":2,"depth":64,"exchange":"cluster","group":1,"in_flight":1,"producer_registers":40,"raster":"along_columns","residency":1,"schedule":"cooperative","splits":2,"stages":4,"staging":0,"swapped":true},"template":"hopper"}','ok','search',0,0.0011,0.001,'[0.001,0.0011]','[0.001]','cpu',NULL,'',0.0,0.0,1795169785.0,1.7958780991798522472e+09,'9af0',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(2,'fc86b42ae2bd094b6d1814ff6baa5f04c7da53e939691b14f3b8f04315670960',1,'mma.1','a2f73c4f8d418cd8561af0c41bfca1d06ed3a78d986640b691631a9efd413643','{"decisions":{"depth":32,"exchange":"store","group":1,"raster":"along_columns","residency":2,"splits":1,"stages":5,"store":"direct","tile_columns":16,"tile_rows":16,"warp_columns":4,"warp_rows":1},"template":"mma"}','ok','search',0,0.0022,0.002,'[0.002,0.0022]','[0.001]','cpu',NULL,'',0.0,0.0,1795169786.0,1.79587809919935393332e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(3,'e19f007243749d72b8faa5607382d9998aa0ec2105e3e84d7dd2a75c74296642',2,'thin.2','0a77c78dac8bc13db70f7876ea16a0d7eea8ffbf7e6c65a0a62cc8d902035eb5','{"decisions":{"exchange":"store","fetch":0,"in_flight":1,"lane_columns":16,"multiply":"fma","reads":"lanes","residency":1,"small":"cache","splits":1,"thread_columns":2,"thread_depth":16,"warp_columns":2,"warp_depth":4},"template":"thin"}','ok','search',0,3.30000000000000041563e-03,0.003,'[0.003,0.0033000000000000004]','[0.001]','cpu',NULL,'',0.0,0.0,1795169787.0,1.79587809921439576143e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(4,'41c7369e06b747dfc9e54fc2196239b15488b515c41999f12cfd364afb3f67a2',3,'rows.6','fb556de462b8fcc8e026769891d1b2be32437e76497ea2d38976e952969746e5','{"decisions":{"ahead":0,"block_rows":4,"cluster":1,"common":"again","grid":"tiles","hold":"memory","lanes":"columns","loads":"stream","passes":"plain","residency":6,"row_threads":32,"spared":0,"stages":1,"stores":"cached","thread_rows":2,"unpack":"once","unroll":1,"vector":4},"template":"rows"}','ok','search',0,0.0044,0.004,'[0.004,0.0044]','[0.001]','cpu',NULL,'',0.0,0.0,1795169788.0,1.7958780992401390076e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(5,'daeb329e8b738f1e38a7ce7e74ae4a76dba9f41bdafbfb478850aa95ca25547d',4,'kept.4','f9293331acb8822e4c3e695fa7d0ad4ae019c6601bcfdd02a0b6da6e860297d3','{"decisions":{"across":"a2","ahead":1,"share":1,"split":1,"stores":"cached","threads":64,"turns":1,"unroll":1,"vector":1},"template":"kept"}','ok','search',0,5.50000000000000054817e-03,0.005,'[0.005,0.0055000000000000005]','[0.001]','cpu',NULL,'',0.0,0.0,1795169789.0,1.79587809926471543313e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(6,'5067ec16dc6981fe96eba385e8804fc4ae12d9694f1e0288909096a79be33e64',5,'chained_hopper.8','bdc44d97fa2f6ee0c306189965f6b3e99ed78eb975fcb94ad8987d11c90054f7','{"decisions":{"beside":0,"blocks":"grid","keys":16,"merge":"last","overlap":0,"own_keys":1,"ping_pong":0,"queries":"registers","query_buffers":1,"rescale":"always","residency":1,"section":1,"split":8,"stages":4,"warpgroups":3},"template":"chained_hopper"}','ok','search',0,6.60000000000000083127e-03,0.006,'[0.006,0.006600000000000001]','[0.001]','cpu',NULL,'',0.0,0.0,1795169790.0,1.79587809928846430778e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(7,'5f817c23e7f7ae90c22c990bb156b108d42496730755ae4e07f0ebae68701880',6,'windows.1','b08d988e88e8fba8e4892cb2484bed99fd61546f2751af92fd96fe5e676dfe8a','{"decisions":{"residency":3,"store":"direct","tile_columns":32,"tile_rows":128,"turns":1,"warp_columns":1,"warp_rows":1},"template":"windows"}','ok','search',0,7.70000000000000111438e-03,0.007,'[0.007,0.007700000000000001]','[0.001]','cpu',NULL,'',0.0,0.0,1795169791.0,1.7958780993205749988e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(8,'85a72475487034eb8dbfdcf25a83940814b759fb85d16b4b805738b804edb516',4,'packed.1+map.1+map.1+mma.1','e49a2d3e66f4c4caa1842fa1d1c29122e737ae945f2c7f57717ac0f902d43638','{"decisions":{"depth_3":128,"exchange_3":"add","group_3":1,"lanes_1":"tile","lanes_2":"line","order_1":"rows","order_2":"rows","raster_3":"along_columns","residency_3":1,"splits_3":2,"stages_3":5,"store_3":"direct","stores_1":"stream","stores_2":"cached","threads_1":64,"threads_2":64,"tile_columns_1":16,"tile_columns_2":16,"tile_columns_3":16,"tile_rows_1":16,"tile_rows_2":32,"tile_rows_3":32,"vector_1":2,"vector_2":8,"warp_columns_3":2,"warp_rows_3":1},"template":"packed"}','ok','search',0,0.0088,0.008,'[0.008,0.0088]','[0.001]','cpu',NULL,'',0.0,0.0,1795169792.0,1.7958780993433306217e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(9,'26bfdfa964daaebd1ca19f6840c22cc7036911810fbf39202bbbff638fa2d46b',2,'loops.1','9b525f933c86e6faa8d3f08e187e4c2536c82386853e92b0ee7171b3a2a0e173','{"decisions":{"sharing":8,"threads":256},"template":"loops"}','ok','search',0,9.90000000000000254796e-03,9.00000000000000105471e-03,'[0.009000000000000001,0.009900000000000003]','[0.001]','cpu',NULL,'',0.0,0.0,1795169793.0,1.79587809934968066212e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(10,'3992b70039323db93550dd4c6d019431bf8dc8bbc039a80530dd772192019cf6',7,'chained.6','ed6cab1066022238ca522953ca6ba73de9111d0653eda83a7d4c4e7c942fe0eb','{"decisions":{"keys":96,"rows":6,"score_rows":6,"score_vectors":1,"scores":"panels","splits":1,"unroll":1,"value_rows":6,"value_vectors":1,"values":"in_place","workers":4},"template":"chained"}','ok','search',0,1.10000000000000010963e-02,0.01,'[0.01,0.011000000000000001]','[0.001]','cpu',NULL,'',0.0,0.0,1795169794.0,1.79587809935939574242e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(11,'1bcfef866b3318510fb56cb0f86b62a39e0ff8e1347e88db7cab9fd75376cb20',8,'map.7','f4429d600fcd766c2e3bb5624e942b9c6322a57d585a1c72559836ebd859d84f','{"decisions":{"ahead":"nothing","order":"columns","stream":false,"tile_columns":16,"tile_rows":128,"unroll":1,"workers":4},"template":"map"}','ok','search',0,0.0121,0.011,'[0.011,0.0121]','[0.001]','cpu',NULL,'',0.0,0.0,1795169795.0,1.79587809938847160337e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(12,'9f8910665ecf7a77ccae2d6868a1eb94cc7981c10ec7572c2df0d40303c45d67',9,'kept.4','b52581170400be00028c3d412aeb4ab8df947600ea692c418bddf88c551e6726','{"decisions":{"across":"a1","order":"inner","shared":"reduced","stream":false,"turns":5,"unroll":2,"vectors":1,"workers":2},"template":"kept"}','ok','search',0,1.32000000000000016625e-02,0.012,'[0.012,0.013200000000000002]','[0.001]','cpu',NULL,'',0.0,0.0,1795169796.0,1.79587809941654372213e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(13,'2a19f3d170a9c2a2895c1b25c903ef5c072b03659394108bdf573e28a281908f',10,'winograd.1','978c3ae1c1ade12cac964928ee2e1684f21d4af6e984c7330c603760078fc0d2','{"decisions":{"block_columns":16,"block_squares":16,"column_workers":4,"outputs":4,"row_workers":1,"tile_rows":7,"tile_vectors":2,"unroll":2},"template":"winograd"}','ok','search',0,1.43000000000000019456e-02,1.30000000000000011379e-02,'[0.013000000000000001,0.014300000000000002]','[0.001]','cpu',NULL,'',0.0,0.0,1795169797.0,1.7958780994300014973e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(14,'5c58658c0c77861753d0c4f49ee19312e5ac623fa8b16a89a33011690e74d93b',9,'windows.4','29609da2ac9d1ab51447ca428448a473d1e96589ba9eb57cf54e61d660f2a3c9','{"decisions":{"batch_workers":1,"block_columns":128,"block_depth":256,"column_workers":1,"order":"columns_outer","pack_right":true,"row_workers":4,"tile_rows":5,"tile_vectors":3,"unroll":2},"template":"windows"}','ok','search',0,1.54000000000000022287e-02,0.014,'[0.014,0.015400000000000002]','[0.001]','cpu',NULL,'',0.0,0.0,1795169798.0,1.79587809945669841767e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(15,'18494fbe4e26fcb153b6c3cf3ae91680f7a6a1d43a41409d8b1b00d7f72d020b',11,'rows.4','b8ddaf17f22b3594a29a6c1fbbb198ae47b59b2975ccc62d7ab5a73759279045','{"decisions":{"ahead":false,"held":"scratch","lanes":"columns","passes":"plain","stores":"cached","unroll":1,"workers":2},"template":"rows"}','ok','search',0,0.0165,0.015,'[0.015,0.0165]','[0.001]','cpu',NULL,'',0.0,0.0,1795169799.0,1795878099.46848,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(16,'1f43e45869235608737ae3ddad3cd63edade0ac98e02e41c304c4552479b7111',12,'staged_loops.1+thin_dots.5+map.7','95e4d10a0c13011f77a17a94a5200c72c52be6331a6bc8e900530bd8095c20a5','{"decisions":{"ahead_2":"nothing","block_depth_1":1024,"column_workers_1":2,"depth_workers_1":1,"order_2":"rows","pack_left_1":false,"prefetch_1":0,"stream_2":false,"tile_columns_1":8,"tile_columns_2":1024,"tile_rows_1":3,"tile_rows_2":1,"unroll_1":1,"unroll_2":4,"workers_2":1},"template":"staged_loops"}','ok','search',0,0.0176,0.016,'[0.016,0.0176]','[0.001]','cpu',NULL,'',0.0,0.0,1795169800.0,1.7958780994844520092e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
INSERT INTO "measurements" VALUES(17,'0b8d25dcfeb8d2c836d0875c448c9ac8a59a50aece897b17667776369ab9cb3e',13,'contraction.1','89c2f30b0796372ad0f3cda3002f371f4271e83514892c9f19dea037aadf6607','{"decisions":{"mc":2,"order":"mnk","packed":true},"template":"contraction"}','ok','search',0,0.55,0.5,'[0.5,0.55]','[0.001]','cpu',NULL,'',0.0,0.0,0.0,1.79587809949991059304e+09,'',NULL,NULL,NULL,NULL,'','','','{"registers":30}');
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
INSERT INTO "pairs" VALUES(1,1,1,2,0,0);
INSERT INTO "pairs" VALUES(2,2,1,2,0,0);
INSERT INTO "pairs" VALUES(3,3,1,1,0,0);
INSERT INTO "pairs" VALUES(4,4,1,2,0,0);
INSERT INTO "pairs" VALUES(5,5,1,1,0,0);
INSERT INTO "pairs" VALUES(6,6,1,1,0,0);
INSERT INTO "pairs" VALUES(7,7,2,1,0,0);
INSERT INTO "pairs" VALUES(8,8,2,1,0,0);
INSERT INTO "pairs" VALUES(9,4,2,2,0,0);
INSERT INTO "pairs" VALUES(10,9,2,1,0,0);
INSERT INTO "pairs" VALUES(11,3,2,1,0,0);
INSERT INTO "pairs" VALUES(12,1,2,1,0,0);
INSERT INTO "pairs" VALUES(13,10,3,1,0,0);
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
CREATE TABLE targets (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (fingerprint)
);
INSERT INTO "targets" VALUES(1,'b3fab0a79b320d61b501ab93111bbbe9','{"bandwidth":4800000000000.0,"blocks_per_multiprocessor":32,"clock":1980000000.0,"compiler":"nvrtc","compiler_version":"13.5.37","features":["cp_async","mma","mma_fp8","tma","cluster","wgmma"],"float32_flops":256,"float64_flops":128,"kind":"cuda","l2_bytes":62914560,"model":"NVIDIA H200","multiprocessors":132,"name":"sm_90a","registers_per_multiprocessor":65536,"registers_per_thread":255,"shared_per_block":232448,"shared_per_multiprocessor":233472,"tensor_flops":4096,"threads_per_block":1024,"threads_per_multiprocessor":2048}');
INSERT INTO "targets" VALUES(2,'af15be07f3c733ef62a8514292a742b8','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"0.0","cores":4,"flags":["-O2"],"fma":true,"isa":"avx512","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":33554432,"model":"made up","threads":4,"vector_bytes":64,"vector_registers":32}');
INSERT INTO "targets" VALUES(3,'acb95b26f0763eeb45ef041fe001974c','{"architecture":"x86_64","bf16_dot":false,"compiler":"gcc","compiler_version":"12.2.0","cores":4,"flags":["-O2","-march=native"],"fma":true,"isa":"avx2","kind":"cpu","l1_bytes":32768,"l2_bytes":524288,"l3_bytes":16777216,"model":"Example CPU","threads":1,"vector_bytes":32,"vector_registers":16}');
CREATE TABLE tilewright_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT tilewright_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "tilewright_schema" VALUES('0007');
CREATE TABLE workloads (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	operator VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, family TEXT DEFAULT '{}' NOT NULL, extents TEXT DEFAULT '{}' NOT NULL, text TEXT DEFAULT '' NOT NULL, flops DOUBLE DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "workloads" VALUES(1,'matmul m=5 n=130 k=96 dtype=bfloat16 out=bfloat16 a=row b=col c=row','matmul','{"operator":"matmul","parameters":{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","k":96,"m":5,"n":130,"out":"bfloat16"}}','{"a":"row","b":"col","c":"row","dtype":"bfloat16","epilogue":"","out":"bfloat16"}','{"k":96,"m":5,"n":130}','matmul m=5 n=130 k=96 dtype=bfloat16 out=bfloat16 a=row b=col c=row',124800.0);
INSERT INTO "workloads" VALUES(2,'matmul m=3 n=65 k=70 dtype=float32 out=float32 a=row b=row c=row','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"","k":70,"m":3,"n":65,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"","out":"float32"}','{"k":70,"m":3,"n":65}','matmul m=3 n=65 k=70 dtype=float32 out=float32 a=row b=row c=row',27300.0);
INSERT INTO "workloads" VALUES(3,'program 1c5569872edfb0c6','softmax','{"operator":"softmax","parameters":{"c":200,"r":40},"program":["axes r=40, c=200","x: float32[40, 200]","y_max[r] = max[c](x[r, c])","y_sum[r] = sum[c](exp(x[r, c] - y_max[r]))","y[r, c] = exp(x[r, c] - y_max[r]) / y_sum[r]","y: float32[40, 200]","-> y"]}','{"stages":"y_max[r] = max[c](x[r, c])\ny_sum[r] = sum[c](exp(x[r, c] - y_max[r]))\ny[r, c] = exp(x[r, c] - y_max[r]) / y_sum[r]","x":"float32","y":"float32"}','{"c":200,"r":40}','softmax r=40 c=200',0.0);
INSERT INTO "workloads" VALUES(4,'program 1ab196aba3d6cdca','conv2d','{"operator":"conv2d","parameters":{"c":16,"dtype":"bfloat16","h":9,"n":2,"o":24,"padding":1,"r":3,"s":3,"w":9},"program":["axes n=2, o=24, p=9, q=9, c=16, r=3, s=3","image: bfloat16[2, 16, 9, 9]","filter: bfloat16[24, 16, 3, 3]","y[n, o, p, q] = sum[c, r, s](inside(image[n, c, 1 * p + 1 * r - 1, 1 * q + 1 * s - 1], 0) * filter[o, c, r, s])","y: bfloat16[2, 24, 9, 9]","-> y"]}','{"filter":"bfloat16","image":"bfloat16","stages":"y[n, o, p, q] = sum[c, r, s](inside(image[n, c, 1 * p + 1 * r - 1, 1 * q + 1 * s - 1], 0) * filter[o, c, r, s])","y":"bfloat16"}','{"c":16,"n":2,"o":24,"p":9,"q":9,"r":3,"s":3}','conv2d n=2 c=16 h=9 w=9 o=24 r=3 s=3 padding=1 dtype=bfloat16',1119744.0);
INSERT INTO "workloads" VALUES(5,'program b6712d139f8e1287','attention','{"operator":"attention","parameters":{"b":2,"d":64,"dtype":"bfloat16","h":4,"i":200,"j":200,"kv":2,"mask":"causal"},"program":["axes b=2, h=4, i=200, j=200, d=64, e=64","q: bfloat16[2, 4, 200, 64]","k: bfloat16[2, 2, 200, 64]","v: bfloat16[2, 2, 200, 64]","where j <= i","y_sum[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h // 2, j, d])","y_max[b, h, i] = max[j](y_sum[b, h, i, j] * 0.125)","y_sum2[b, h, i] = sum[j](exp(y_sum[b, h, i, j] * 0.125 - y_max[b, h, i]))","y[b, h, i, e] = sum[j](exp(y_sum[b, h, i, j] * 0.125 - y_max[b, h, i]) / y_sum2[b, h, i] * v[b, h // 2, j, e])","y: bfloat16[2, 4, 200, 64]","-> y"]}','{"k":"bfloat16","q":"bfloat16","stages":"j <= i\ny_sum[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h // 2, j, d])\ny_max[b, h, i] = max[j](y_sum[b, h, i, j] * 0.125)\ny_sum2[b, h, i] = sum[j](exp(y_sum[b, h, i, j] * 0.125 - y_max[b, h, i]))\ny[b, h, i, e] = sum[j](exp(y_sum[b, h, i, j] * 0.125 - y_max[b, h, i]) / y_sum2[b, h, i] * v[b, h // 2, j, e])","v":"bfloat16","y":"bfloat16"}','{"b":2,"d":64,"e":64,"h":4,"i":200,"j":200}','attention b=2 h=4 kv=2 i=200 j=200 d=64 mask=causal dtype=bfloat16',41164800.0);
INSERT INTO "workloads" VALUES(6,'program 448505bbc56d7d87','conv2d','{"operator":"conv2d","parameters":{"c":3,"dtype":"float16","h":15,"layout":"NHWC","n":2,"o":24,"r":3,"s":3,"stride":2,"w":17},"program":["axes n=2, o=24, p=7, q=8, c=3, r=3, s=3","image: float16[2, 15, 17, 3]","filter: float16[24, 3, 3, 3]","y[n, p, q, o] = sum[c, r, s](image[n, 2 * p + 1 * r, 2 * q + 1 * s, c] * filter[o, r, s, c])","y: float16[2, 7, 8, 24]","-> y"]}','{"filter":"float16","image":"float16","stages":"y[n, p, q, o] = sum[c, r, s](image[n, 2 * p + 1 * r, 2 * q + 1 * s, c] * filter[o, r, s, c])","y":"float16"}','{"c":3,"n":2,"o":24,"p":7,"q":8,"r":3,"s":3}','conv2d n=2 c=3 h=15 w=17 o=24 r=3 s=3 stride=2 layout=NHWC dtype=float16',145152.0);
INSERT INTO "workloads" VALUES(7,'program 912cc9e917a23311','attention','{"operator":"attention","parameters":{"b":2,"d":16,"h":2,"i":40,"j":40},"program":["axes b=2, h=2, i=40, j=40, d=16, e=16","q: float32[2, 2, 40, 16]","k: float32[2, 2, 40, 16]","v: float32[2, 2, 40, 16]","y_sum[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h // 1, j, d])","y_max[b, h, i] = max[j](y_sum[b, h, i, j] * 0.25)","y_sum2[b, h, i] = sum[j](exp(y_sum[b, h, i, j] * 0.25 - y_max[b, h, i]))","y[b, h, i, e] = sum[j](exp(y_sum[b, h, i, j] * 0.25 - y_max[b, h, i]) / y_sum2[b, h, i] * v[b, h // 1, j, e])","y: float32[2, 2, 40, 16]","-> y"]}','{"k":"float32","q":"float32","stages":"y_sum[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h // 1, j, d])\ny_max[b, h, i] = max[j](y_sum[b, h, i, j] * 0.25)\ny_sum2[b, h, i] = sum[j](exp(y_sum[b, h, i, j] * 0.25 - y_max[b, h, i]))\ny[b, h, i, e] = sum[j](exp(y_sum[b, h, i, j] * 0.25 - y_max[b, h, i]) / y_sum2[b, h, i] * v[b, h // 1, j, e])","v":"float32","y":"float32"}','{"b":2,"d":16,"e":16,"h":2,"i":40,"j":40}','attention b=2 h=2 i=40 j=40 d=16',409600.0);
INSERT INTO "workloads" VALUES(8,'program 7a16251842873fde','program','{"operator":"program","parameters":{"i":70,"j":130,"text":"y[j, i] = relu(x[i, j] + b[i])"},"program":["axes i=70, j=130","x: float32[70, 130]","b: float32[70]","y[j, i] = relu(x[i, j] + b[i])","y: float32[130, 70]","-> y"]}','{"b":"float32","stages":"y[j, i] = relu(x[i, j] + b[i])","x":"float32","y":"float32"}','{"i":70,"j":130}','"y[j, i] = relu(x[i, j] + b[i])" i=70 j=130',0.0);
INSERT INTO "workloads" VALUES(9,'program 0cbd7eeaccb563d5','conv2d','{"operator":"conv2d","parameters":{"c":40,"h":9,"layout":"NHWC","n":1,"o":24,"padding":1,"r":3,"s":3,"w":9},"program":["axes n=1, o=24, p=9, q=9, c=40, r=3, s=3","image: float32[1, 9, 9, 40]","filter: float32[24, 3, 3, 40]","y[n, p, q, o] = sum[c, r, s](inside(image[n, 1 * p + 1 * r - 1, 1 * q + 1 * s - 1, c], 0) * filter[o, r, s, c])","y: float32[1, 9, 9, 24]","-> y"]}','{"filter":"float32","image":"float32","stages":"y[n, p, q, o] = sum[c, r, s](inside(image[n, 1 * p + 1 * r - 1, 1 * q + 1 * s - 1, c], 0) * filter[o, r, s, c])","y":"float32"}','{"c":40,"n":1,"o":24,"p":9,"q":9,"r":3,"s":3}','conv2d n=1 c=40 h=9 w=9 o=24 r=3 s=3 padding=1 layout=NHWC',1399680.0);
INSERT INTO "workloads" VALUES(10,'matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue=ea7ed0f1e7c3cb2a','matmul','{"operator":"matmul","parameters":{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"relu(x + bias[n])","k":128,"m":64,"n":96,"out":"float32"}}','{"a":"row","b":"row","c":"row","dtype":"float32","epilogue":"ea7ed0f1e7c3cb2a","out":"float32"}','{"k":128,"m":64,"n":96}','matmul m=64 n=96 k=128 dtype=float32 out=float32 a=row b=row c=row epilogue="relu(x + bias[n])"',1572864.0);
CREATE INDEX ix_workloads_operator ON workloads (operator);
CREATE INDEX ix_pairs_target_id ON pairs (target_id);
CREATE INDEX ix_runs_session ON runs (session);
CREATE INDEX best_known ON measurements (pair_id, doubted, rank_score, id) WHERE rank_score IS NOT NULL;
CREATE INDEX attempts_of_schedule ON measurements (pair_id, schedule_digest, round);
CREATE INDEX measurements_of_run ON measurements (run);
CREATE INDEX comparisons ON measurements (pair_id, id) WHERE round = 'final';
COMMIT;
