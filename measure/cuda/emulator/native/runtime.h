// What an emulated kernel may call: the machine's interface. No headers, so that kernels compile fast.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct e4m3 { u8 bits; };
struct e5m2 { u8 bits; };

// The emulator's own form of a tensor map: same size and alignment as the driver's.
struct alignas(64) TensorMap {
  u64 base;
  u64 strides[4];  // bytes, of dimensions 1..4
  u32 dims[5];
  u16 box[5];
  u8 rank, element_bytes, swizzle, kind;  // swizzle in bytes; kind is a Kind
  u8 windows, steps[3];                   // of pixels: dimensions with corners, 0 for a plain box
  short lower[3], upper[3];
};
static_assert(sizeof(TensorMap) == 128, "a tensor map takes 128 bytes");

// The C library's functions that epilogues and loops call.
extern "C" {
double atan(double);
double atan2(double, double);
double cos(double);
double erf(double);
double erfc(double);
double exp(double);
double exp2(double);
double expm1(double);
double fabs(double);
double floor(double);
double fmod(double, double);
double ldexp(double, int);
double log(double);
double log1p(double);
double pow(double, double);
double rint(double);
double sin(double);
double sqrt(double);
double tanh(double);
int ilogb(double);
float atan2f(float, float);
float atanf(float);
float copysignf(float, float);
float cosf(float);
float erff(float);
float exp2f(float);
float expf(float);
float expm1f(float);
float fabsf(float);
float floorf(float);
float fmaf(float, float, float);
float fminf(float, float);
float fmodf(float, float);
float log1pf(float);
float logf(float);
float powf(float, float);
float rintf(float);
float sinf(float);
float sqrtf(float);
float tanhf(float);
}

namespace tw::emulator {

struct Index { u32 x, y, z; };
enum class Kind : u8 { f64, f32, tf32, f16, bf16, e4m3, e5m2, s32, s8 };

const Index &thread_index();
const Index &block_index();
const Index &block_size();
const Index &grid_size();

float f16_to_float(u16 bits);
float e4m3_to_float(u8 bits);
u16 float_to_f16(float value);
u16 float_to_bf16(float value);
u8 float_to_e4m3(float value);
u8 float_to_e5m2(float value);
u32 float_to_tf32(float value);
i32 float_to_integer(float value, i32 low, i32 high);

void global_load(void *to, const void *from, u32 bytes);
void global_store(void *to, const void *from, u32 bytes);
void global_atomic(const void *at, u32 bytes);  // checks the access that follows
void fence_global();
u32 take_ticket(u32 *counter);
void await_launches();
void signal_global(u32 *flag, u32 value);
void wait_global(const u32 *flag, u32 value);

u32 shared_base();
void shared_load(void *to, u32 from, u32 bytes, bool remote);
void shared_store(u32 to, const void *from, u32 bytes, bool remote);
void store_async(u32 to, const void *from, u32 bytes, u32 barrier);

u32 lane();
void shuffle(void *value, u32 bytes, u32 from_lane);
void sync_warp();
void barrier(u32 id, u32 threads, bool wait);  // threads 0: the whole block

void cp_async(u32 to, const void *from, u32 bytes, u32 valid);
void cp_async_commit();
void cp_async_wait(u32 pending);

void ldmatrix(u32 *registers, u32 count, u32 from, bool transposed);
void stmatrix(u32 to, const u32 *registers, u32 count, bool transposed);

void mbarrier_init(u32 barrier, u32 arrivals);
void mbarrier_arrive(u32 barrier, u32 expected_bytes, bool remote);
void mbarrier_expect(u32 barrier, u32 bytes);
void mbarrier_wait(u32 barrier, u32 parity, bool cluster);
void fence_barrier_init();
void fence_async();

u32 cluster_rank();
u32 map_shared(u32 address, u32 rank);
void cluster_arrive();
void cluster_wait();

// `at` has the first element of a box; or the first pixel, then offsets along dimensions with corners.
void tma_load(u32 to, const TensorMap *map, u32 barrier, const u16 *ranks, u32 rank, const i32 *at,
              bool windows = false);
void bulk_load(u32 to, const void *from, u32 bytes, u32 barrier);
void tma_store(const TensorMap *map, u32 from, bool add, u32 rank, const i32 *at);
void tma_commit();
void tma_wait(u32 pending);

void set_registers(u32 count, bool up);
void mma(Kind d_kind, Kind a_kind, Kind b_kind, u32 k, void *d, const u32 *a, const u32 *b);
void wgmma(Kind d_kind, Kind a_kind, Kind b_kind, u32 n, u32 k, void *d, u64 a, const u32 *a_registers,
           u64 b, int accumulate, bool a_transposed, bool b_transposed);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(u32 pending);

}  // namespace tw::emulator
