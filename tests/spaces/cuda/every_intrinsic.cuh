// One call of every intrinsic, by the architecture that brings it. Compiled, never run.
#define KERNEL extern "C" __global__ void __launch_bounds__(128, 1)

KERNEL ampere(float *f, double *d, u32 *w, f16 *h, bf16 *b, i8 *c, i32 *n) {
  const u32 s = tw::shared_base();
  float x[4], low, high;
  tw::load_global<4>(x, f);
  tw::store_global<4>(f + 4, x);
  tw::store_global(f + 8, tw::load_global(f + 9));
  tw::load_shared<4>(x, s);
  tw::store_shared<4>(s + 16, x);
  tw::store_shared(s + 32, tw::load_shared<double>(s + 40));
  tw::atomic_add(f, 1.f);
  tw::atomic_add(d, 1.0);
  tw::atomic_add(w, 1u);
  tw::atomic_add(n, 1);
  h[0] = tw::from_float<f16>(tw::to_float(h[1]));
  b[0] = tw::from_float<bf16>(tw::to_float(b[1]));
  c[0] = tw::from_float<i8>(tw::to_float(c[1]));
  n[0] = tw::from_float<i32>(tw::to_float(n[1]));
  d[0] = tw::from_float<double>(tw::to_float(d[1]) + tw::to_float(1.f) + tw::from_float<float>(2.f));
  tw::unpack2<f16>(tw::pack2<f16>(x[0], x[1]), low, high);
  tw::unpack2<bf16>(tw::pack2<bf16>(low, high), x[0], x[1]);
  w[0] = tw::to_tf32(x[0]) + tw::float_bits(tw::bits_float(w[1]) + x[1]);
  tw::fence_global();
  w[2] = tw::take_ticket(w + 3);
  tw::signal_global(w + 4, 1);
  tw::wait_global(w + 5, 1);
  tw::sync_block();
  tw::sync_warp();
  tw::arrive_named(1, 128);
  tw::sync_named(2, 64);
  f[1] = tw::shuffle(x[0], 3) + tw::shuffle_xor(x[1], 1);
  w[6] = tw::warp_uniform(w[7]);
  tw::cp_async<4>(s, f);
  tw::cp_async<8>(s, f, 4);
  tw::cp_async<16>(s, f, w[8]);
  tw::cp_async_commit();
  tw::cp_async_wait<1>();
  u32 one[1], two[2], four[4];
  tw::ldmatrix_x1(one, s);
  w[9] = one[0];
  tw::ldmatrix_x2(two, s);
  w[10] = two[0] + two[1];
  tw::ldmatrix_x4(four, s);
  w[11] = four[0] + four[3];
  tw::ldmatrix_x1_trans(one, s);
  w[12] = one[0];
  tw::ldmatrix_x2_trans(two, s);
  w[13] = two[0] + two[1];
  tw::ldmatrix_x4_trans(four, s);
  w[14] = four[0] + four[3];
}

// --- sm_90a
KERNEL hopper(const __grid_constant__ TensorMap map, u32 *w, e4m3 *p, e5m2 *q) {
  const u32 s = tw::shared_base(), b = s + 4096, rank = tw::cluster_rank(), next = rank ^ 1;
  p[0] = tw::from_float<e4m3>(tw::to_float(p[1]));
  q[0] = tw::from_float<e5m2>(tw::to_float(q[1]));
  tw::registers_down<40>();
  if (tw::elect_one()) tw::mbarrier_init(b, 2);
  tw::fence_barrier_init();
  tw::cluster_arrive();
  tw::cluster_wait();
  tw::tma_prefetch(&map);
  tw::mbarrier_arrive_expect(b, 64);
  tw::mbarrier_expect(b, 64);
  tw::mbarrier_arrive(b);
  tw::mbarrier_arrive_remote(tw::map_shared(b, next));
  tw::tma_load_2d(s, &map, b, 0, 1);
  tw::tma_load_3d(s, &map, b, 0, 1, 2);
  tw::tma_multicast_2d(s, &map, b, 3, 0, 1);
  tw::tma_multicast_3d(s, &map, b, 3, 0, 1, 2);
  tw::mbarrier_wait(b, 0);
  w[0] = tw::load_remote(tw::map_shared(s, next));
  tw::store_remote(tw::map_shared(s, next), 1);
  const u32 two[2] = {w[1], w[2]}, four[4] = {w[3], w[4], w[5], w[6]};
  tw::stmatrix_x2(s, two);
  tw::stmatrix_x4(s, four);
  tw::stmatrix_x2_trans(s, two);
  tw::stmatrix_x4_trans(s, four);
  tw::fence_async();
  tw::tma_store_2d(&map, s, 0, 1);
  tw::tma_store_3d(&map, s, 0, 1, 2);
  tw::tma_add_2d(&map, s, 0, 1);
  tw::tma_add_3d(&map, s, 0, 1, 2);
  tw::tma_commit();
  tw::tma_wait_read<1>();
  tw::tma_wait<0>();
  tw::registers_up<232>();
  const u64 from = tw::wgmma_descriptor<128>(s, 16, 1024) + tw::wgmma_descriptor<0>(s, 128, 256);
  float d[4];
  tw::wgmma_fence();
  tw::wgmma_m64n8k16_f32_bf16_bf16_ss(d, from, from, 0);
  tw::wgmma_commit();
  tw::wgmma_wait<0>();
  w[7] = tw::float_bits(d[0] + d[1] + d[2] + d[3]);
  tw::sync_cluster();
}
