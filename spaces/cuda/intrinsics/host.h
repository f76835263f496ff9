// Host side of the intrinsics: the emulated twin of each function of device.cuh, in its order.
// Stands on the emulator's runtime.h, which comes before it.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define threadIdx (tw::emulator::thread_index())
#define blockIdx (tw::emulator::block_index())
#define blockDim (tw::emulator::block_size())
#define gridDim (tw::emulator::grid_size())
#define TW_INLINE static inline

namespace tw {

// ---- where am I
TW_INLINE u32 shared_base() { return emulator::shared_base(); }
TW_INLINE i32 opaque(i32 x) { return x; }
TW_INLINE u32 in_register(u32 x) { return x; }
TW_INLINE u32 cluster_rank() { return emulator::cluster_rank(); }
TW_INLINE bool elect_one() { return emulator::lane() == 0; }

// ---- numbers
TW_INLINE u32 float_bits(float x) { return __builtin_bit_cast(u32, x); }
TW_INLINE float bits_float(u32 x) { return __builtin_bit_cast(float, x); }
TW_INLINE u32 byte_permute(u32 low, u32 high, u32 picks) {
  const u64 bytes = (u64)high << 32 | low;
  u32 found = 0;
  for (int i = 0; i < 4; i++) found |= (u32)(u8)(bytes >> (picks >> 4 * i & 7) * 8) << 8 * i;
  return found;
}
TW_INLINE float to_float(float x) { return x; }
TW_INLINE float to_float(double x) { return (float)x; }
TW_INLINE float to_float(i8 x) { return x; }
TW_INLINE float to_float(i32 x) { return (float)x; }
TW_INLINE float to_float(i64 x) { return (float)x; }
TW_INLINE float to_float(u8 x) { return x; }
TW_INLINE float to_float(u16 x) { return x; }
TW_INLINE float to_float(f16 x) { return emulator::f16_to_float(x.bits); }
TW_INLINE float to_float(bf16 x) { return bits_float((u32)x.bits << 16); }
TW_INLINE float to_float(e4m3 x) { return emulator::e4m3_to_float(x.bits); }
TW_INLINE float to_float(e5m2 x) { return emulator::f16_to_float((u16)(x.bits << 8)); }
template <class T> struct Convert;
template <> struct Convert<float> { TW_INLINE float from(float x) { return x; } };
template <> struct Convert<double> { TW_INLINE double from(float x) { return x; } };
template <> struct Convert<i32> { TW_INLINE i32 from(float x) { return emulator::float_to_integer(x, -2147483647 - 1, 2147483647); } };
template <> struct Convert<i8> { TW_INLINE i8 from(float x) { return (i8)emulator::float_to_integer(x, -128, 127); } };
template <> struct Convert<i64> { TW_INLINE i64 from(float x) { return x == x ? (i64)rintf(x) : 0; } };
template <> struct Convert<u8> { TW_INLINE u8 from(float x) { return (u8)emulator::float_to_integer(x, 0, 255); } };
template <> struct Convert<f16> { TW_INLINE f16 from(float x) { return {emulator::float_to_f16(x)}; } };
template <> struct Convert<bf16> { TW_INLINE bf16 from(float x) { return {emulator::float_to_bf16(x)}; } };
template <> struct Convert<e4m3> { TW_INLINE e4m3 from(float x) { return {emulator::float_to_e4m3(x)}; } };
template <> struct Convert<e5m2> { TW_INLINE e5m2 from(float x) { return {emulator::float_to_e5m2(x)}; } };
template <class T> TW_INLINE T from_float(float x) { return Convert<T>::from(x); }
template <class T> TW_INLINE u32 pack2(float low, float high) {
  return from_float<T>(low).bits | (u32)from_float<T>(high).bits << 16;
}
template <class T> TW_INLINE u32 pack4(float a, float b, float c, float d) {
  return from_float<T>(a).bits | (u32)from_float<T>(b).bits << 8 | (u32)from_float<T>(c).bits << 16 | (u32)from_float<T>(d).bits << 24;
}
template <class T> TW_INLINE void unpack2(u32 x, float &low, float &high) {
  low = to_float(T{(u16)x}); high = to_float(T{(u16)(x >> 16)});
}
TW_INLINE u32 to_tf32(float x) { return emulator::float_to_tf32(x); }
TW_INLINE float exp2_approx(float x) { return x < -126.f ? 0.f : __builtin_exp2f(x); }
TW_INLINE float reciprocal_approx(float x) { return 1.f / x; }
TW_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TW_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
TW_INLINE i32 fused(i32 a, i32 b, i32 c) { return a * b + c; }
template <class T> TW_INLINE u32 fused2(u32 a, u32 b, u32 c) {
  float x[2], y[2], z[2];
  unpack2<T>(a, x[0], x[1]); unpack2<T>(b, y[0], y[1]); unpack2<T>(c, z[0], z[1]);
  return pack2<T>((float)((double)x[0] * y[0] + z[0]), (float)((double)x[1] * y[1] + z[1]));
}
template <class T> TW_INLINE T max_nan(T a, T b) { return a > b || a != a ? a : b; }
template <class T> TW_INLINE T min_nan(T a, T b) { return a < b || a != a ? a : b; }

// ---- plain memory
template <int N, class T> TW_INLINE void load_global(T *to, const T *from) { emulator::global_load(to, from, N * sizeof(T)); }
template <int N, int FETCH, class T> TW_INLINE void load_stream(T *to, const T *from) { emulator::global_load(to, from, N * sizeof(T)); }
template <int N, class T> TW_INLINE void store_global(T *to, const T *from) { emulator::global_store(to, from, N * sizeof(T)); }
template <int N, class T> TW_INLINE void store_stream(T *to, const T *from) { emulator::global_store(to, from, N * sizeof(T)); }
template <class T> TW_INLINE T load_global(const T *from) { T x; emulator::global_load(&x, from, sizeof(T)); return x; }
template <class T> TW_INLINE void store_global(T *to, T value) { emulator::global_store(to, &value, sizeof(T)); }
template <int N, class T> TW_INLINE void load_shared(T *to, u32 from) { emulator::shared_load(to, from, N * sizeof(T), false); }
template <int N, class T> TW_INLINE void store_shared(u32 to, const T *from) { emulator::shared_store(to, from, N * sizeof(T), false); }
template <class T> TW_INLINE T load_shared(u32 from) { T x; emulator::shared_load(&x, from, sizeof(T), false); return x; }
template <class T> TW_INLINE void store_shared(u32 to, T value) { emulator::shared_store(to, &value, sizeof(T), false); }
template <class T> TW_INLINE void atomic_add(T *to, T value) { emulator::global_atomic(to, sizeof(T)); *to += value; }

// ---- across blocks, through global memory
TW_INLINE void fence_global() { emulator::fence_global(); }
TW_INLINE u32 take_ticket(u32 *counter) { return emulator::take_ticket(counter); }
TW_INLINE void allow_launch() {}
TW_INLINE void await_launches() { emulator::await_launches(); }
TW_INLINE void signal_global(u32 *flag, u32 value) { emulator::signal_global(flag, value); }
TW_INLINE void wait_global(const u32 *flag, u32 value) { emulator::wait_global(flag, value); }

// ---- within a block
TW_INLINE void sync_block() { emulator::barrier(0, 0, true); }
TW_INLINE void sync_warp() { emulator::sync_warp(); }
TW_INLINE void sync_named(int id, int threads) { emulator::barrier(id, threads, true); }
TW_INLINE void arrive_named(int id, int threads) { emulator::barrier(id, threads, false); }
template <class T> TW_INLINE T shuffle(T x, int lane) { emulator::shuffle(&x, sizeof(T), lane & 31); return x; }
template <class T> TW_INLINE T shuffle_xor(T x, int mask) { emulator::shuffle(&x, sizeof(T), (emulator::lane() ^ mask) & 31); return x; }
TW_INLINE u32 warp_uniform(u32 x) { return shuffle(x, 0); }
TW_INLINE int count_lanes(bool x) {
  i32 found = x;
  for (int mask = 1; mask < 32; mask *= 2) found += shuffle_xor(found, mask);
  return found;
}
TW_INLINE bool any_lane(bool x) {
  i32 found = x;
  for (int mask = 1; mask < 32; mask *= 2) found |= shuffle_xor(found, mask);
  return found;
}

// ---- cp.async
template <int BYTES> TW_INLINE void cp_async(u32 to, const void *from, u32 valid = BYTES) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async moves 4, 8 or 16 bytes");
  emulator::cp_async(to, from, BYTES, valid);
}
TW_INLINE void cp_async_commit() { emulator::cp_async_commit(); }
template <int N> TW_INLINE void cp_async_wait() { emulator::cp_async_wait(N); }

// ---- matrices in shared memory
TW_INLINE void ldmatrix_x1(u32 (&r)[1], u32 from) { emulator::ldmatrix(r, 1, from, false); }
TW_INLINE void ldmatrix_x2(u32 (&r)[2], u32 from) { emulator::ldmatrix(r, 2, from, false); }
TW_INLINE void ldmatrix_x4(u32 (&r)[4], u32 from) { emulator::ldmatrix(r, 4, from, false); }
TW_INLINE void ldmatrix_x1_trans(u32 (&r)[1], u32 from) { emulator::ldmatrix(r, 1, from, true); }
TW_INLINE void ldmatrix_x2_trans(u32 (&r)[2], u32 from) { emulator::ldmatrix(r, 2, from, true); }
TW_INLINE void ldmatrix_x4_trans(u32 (&r)[4], u32 from) { emulator::ldmatrix(r, 4, from, true); }
TW_INLINE void stmatrix_x2(u32 to, const u32 (&r)[2]) { emulator::stmatrix(to, r, 2, false); }
TW_INLINE void stmatrix_x4(u32 to, const u32 (&r)[4]) { emulator::stmatrix(to, r, 4, false); }
TW_INLINE void stmatrix_x2_trans(u32 to, const u32 (&r)[2]) { emulator::stmatrix(to, r, 2, true); }
TW_INLINE void stmatrix_x4_trans(u32 to, const u32 (&r)[4]) { emulator::stmatrix(to, r, 4, true); }

// ---- mbarrier
TW_INLINE void mbarrier_init(u32 barrier, u32 arrivals) { emulator::mbarrier_init(barrier, arrivals); }
TW_INLINE void fence_barrier_init() { emulator::fence_barrier_init(); }
TW_INLINE void fence_async() { emulator::fence_async(); }
TW_INLINE void mbarrier_arrive(u32 barrier) { emulator::mbarrier_arrive(barrier, 0, false); }
TW_INLINE void mbarrier_arrive_expect(u32 barrier, u32 bytes) { emulator::mbarrier_arrive(barrier, bytes, false); }
TW_INLINE void mbarrier_expect(u32 barrier, u32 bytes) { emulator::mbarrier_expect(barrier, bytes); }
TW_INLINE void mbarrier_wait(u32 barrier, u32 parity) { emulator::mbarrier_wait(barrier, parity, false); }
TW_INLINE void mbarrier_wait_cluster(u32 barrier, u32 parity) { emulator::mbarrier_wait(barrier, parity, true); }

// ---- clusters
TW_INLINE u32 map_shared(u32 address, u32 rank) { return emulator::map_shared(address, rank); }
TW_INLINE void mbarrier_arrive_remote(u32 barrier) { emulator::mbarrier_arrive(barrier, 0, true); }
TW_INLINE void mbarrier_report_remote(u32 barrier) { emulator::mbarrier_arrive(barrier, 0, true); }
TW_INLINE u32 load_remote(u32 from) { u32 x; emulator::shared_load(&x, from, 4, true); return x; }
TW_INLINE void store_remote(u32 to, u32 value) { emulator::shared_store(to, &value, 4, true); }
TW_INLINE void store_async_x4(u32 to, const float *from, u32 barrier) { emulator::store_async(to, from, 16, barrier); }
TW_INLINE void cluster_arrive() { emulator::cluster_arrive(); }
TW_INLINE void cluster_arrive_relaxed() { emulator::cluster_arrive(); }
TW_INLINE void cluster_wait() { emulator::cluster_wait(); }
TW_INLINE void sync_cluster() { cluster_arrive(); cluster_wait(); }

// ---- TMA
TW_INLINE void tma_prefetch(const TensorMap *) {}
TW_INLINE void tma_load_2d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y) {
  const i32 at[] = {x, y}; emulator::tma_load(to, map, barrier, nullptr, 2, at);
}
TW_INLINE void tma_load_3d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, i32 z) {
  const i32 at[] = {x, y, z}; emulator::tma_load(to, map, barrier, nullptr, 3, at);
}
TW_INLINE void tma_load_4d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, i32 z, i32 w) {
  const i32 at[] = {x, y, z, w}; emulator::tma_load(to, map, barrier, nullptr, 4, at);
}
TW_INLINE void tma_load_5d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, i32 z, i32 w, i32 v) {
  const i32 at[] = {x, y, z, w, v}; emulator::tma_load(to, map, barrier, nullptr, 5, at);
}
TW_INLINE void tma_multicast_2d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y) {
  const i32 at[] = {x, y}; emulator::tma_load(to, map, barrier, &ranks, 2, at);
}
TW_INLINE void tma_multicast_3d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y, i32 z) {
  const i32 at[] = {x, y, z}; emulator::tma_load(to, map, barrier, &ranks, 3, at);
}
TW_INLINE void tma_multicast_4d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y, i32 z, i32 w) {
  const i32 at[] = {x, y, z, w}; emulator::tma_load(to, map, barrier, &ranks, 4, at);
}
TW_INLINE void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier) {
  emulator::bulk_load(to, from, bytes, barrier);
}
TW_INLINE u64 evict_first() { return 1; }
TW_INLINE void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier, u64) {
  bulk_load(to, from, bytes, barrier);
}
TW_INLINE void tma_load_2d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, u64) {
  tma_load_2d(to, map, barrier, x, y);
}
TW_INLINE void tma_load_3d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, i32 z, u64) {
  tma_load_3d(to, map, barrier, x, y, z);
}
TW_INLINE void tma_load_4d(u32 to, const TensorMap *map, u32 barrier, i32 x, i32 y, i32 z, i32 w, u64) {
  tma_load_4d(to, map, barrier, x, y, z, w);
}
TW_INLINE void tma_multicast_2d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y, u64) {
  tma_multicast_2d(to, map, barrier, ranks, x, y);
}
TW_INLINE void tma_multicast_3d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y, i32 z, u64) {
  tma_multicast_3d(to, map, barrier, ranks, x, y, z);
}
TW_INLINE void tma_multicast_4d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 x, i32 y, i32 z, i32 w, u64) {
  tma_multicast_4d(to, map, barrier, ranks, x, y, z, w);
}
TW_INLINE void tma_load_im2col_4d(u32 to, const TensorMap *map, u32 barrier, i32 c, i32 w, i32 h, i32 n, u16 x, u16 y) {
  const i32 at[] = {c, w, h, n, x, y}; emulator::tma_load(to, map, barrier, nullptr, 4, at, true);
}
TW_INLINE void tma_multicast_im2col_4d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 c, i32 w, i32 h, i32 n, u16 x, u16 y) {
  const i32 at[] = {c, w, h, n, x, y}; emulator::tma_load(to, map, barrier, &ranks, 4, at, true);
}
TW_INLINE void tma_load_im2col_4d(u32 to, const TensorMap *map, u32 barrier, i32 c, i32 w, i32 h, i32 n, u16 x, u16 y, u64) {
  tma_load_im2col_4d(to, map, barrier, c, w, h, n, x, y);
}
TW_INLINE void tma_multicast_im2col_4d(u32 to, const TensorMap *map, u32 barrier, u16 ranks, i32 c, i32 w, i32 h, i32 n, u16 x, u16 y, u64) {
  tma_multicast_im2col_4d(to, map, barrier, ranks, c, w, h, n, x, y);
}
TW_INLINE void tma_store_2d(const TensorMap *map, u32 from, i32 x, i32 y) {
  const i32 at[] = {x, y}; emulator::tma_store(map, from, false, 2, at);
}
TW_INLINE void tma_store_3d(const TensorMap *map, u32 from, i32 x, i32 y, i32 z) {
  const i32 at[] = {x, y, z}; emulator::tma_store(map, from, false, 3, at);
}
TW_INLINE void tma_store_4d(const TensorMap *map, u32 from, i32 x, i32 y, i32 z, i32 w) {
  const i32 at[] = {x, y, z, w}; emulator::tma_store(map, from, false, 4, at);
}
TW_INLINE void tma_store_5d(const TensorMap *map, u32 from, i32 x, i32 y, i32 z, i32 w, i32 v) {
  const i32 at[] = {x, y, z, w, v}; emulator::tma_store(map, from, false, 5, at);
}
TW_INLINE void tma_add_2d(const TensorMap *map, u32 from, i32 x, i32 y) {
  const i32 at[] = {x, y}; emulator::tma_store(map, from, true, 2, at);
}
TW_INLINE void tma_add_3d(const TensorMap *map, u32 from, i32 x, i32 y, i32 z) {
  const i32 at[] = {x, y, z}; emulator::tma_store(map, from, true, 3, at);
}
TW_INLINE void tma_commit() { emulator::tma_commit(); }
template <int N> TW_INLINE void tma_wait_read() { emulator::tma_wait(N); }
template <int N> TW_INLINE void tma_wait() { emulator::tma_wait(N); }

// ---- warpgroups
template <int N> TW_INLINE void registers_up() { emulator::set_registers(N, true); }
template <int N> TW_INLINE void registers_down() { emulator::set_registers(N, false); }
TW_INLINE void wgmma_fence() { emulator::wgmma_fence(); }
TW_INLINE void wgmma_commit() { emulator::wgmma_commit(); }
template <int N> TW_INLINE void wgmma_wait() { emulator::wgmma_wait(N); }
template <int N> TW_INLINE void settle(float (&)[N]) {}
template <int SWIZZLE> TW_INLINE u64 wgmma_descriptor(u32 from, u32 leading, u32 stride) {
  static_assert(SWIZZLE == 0 || SWIZZLE == 32 || SWIZZLE == 64 || SWIZZLE == 128, "swizzle of 0, 32, 64 or 128 bytes");
  const u64 mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
  return (u64)((from & 0x3ffff) >> 4) | (u64)((leading & 0x3ffff) >> 4) << 16 | (u64)((stride & 0x3ffff) >> 4) << 32 | mode << 62;
}

}  // namespace tw
