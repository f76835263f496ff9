// Matrix instructions: ldmatrix, stmatrix, mma.sync and wgmma, by the fragment layouts of the PTX ISA.
#include <cstring>
#include <type_traits>

#include "machine.h"

#if defined(__x86_64__)
#define TW_FAST __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define TW_FAST
#endif

namespace tw::emulator {

namespace {

constexpr u32 bytes_of(Kind kind) {
  switch (kind) {
    case Kind::f16: case Kind::bf16: return 2;
    case Kind::e4m3: case Kind::e5m2: case Kind::s8: return 1;
    default: return 4;
  }
}

bool is_float8(Kind kind) { return kind == Kind::e4m3 || kind == Kind::e5m2; }

template <Kind K> float decoded(const void *at) {
  u32 x = 0;
  memcpy(&x, at, bytes_of(K));
  switch (K) {
    case Kind::f16: return f16_to_float(x);
    case Kind::bf16: return __builtin_bit_cast(float, x << 16);
    case Kind::tf32: return __builtin_bit_cast(float, x & ~0x1fffu);  // the low bits are ignored
    case Kind::e4m3: return e4m3_to_float(x);
    case Kind::e5m2: return f16_to_float(x << 8);
    case Kind::s8: return (i8)x;
    default: return __builtin_bit_cast(float, x);
  }
}

// Calls `work` with the kind as a constant, so that its loops over elements do not ask for it.
template <class Work> void for_kind(Kind kind, Work work) {
  switch (kind) {
    case Kind::f16: return work(std::integral_constant<Kind, Kind::f16>());
    case Kind::bf16: return work(std::integral_constant<Kind, Kind::bf16>());
    case Kind::tf32: return work(std::integral_constant<Kind, Kind::tf32>());
    case Kind::e4m3: return work(std::integral_constant<Kind, Kind::e4m3>());
    case Kind::e5m2: return work(std::integral_constant<Kind, Kind::e5m2>());
    case Kind::s8: return work(std::integral_constant<Kind, Kind::s8>());
    case Kind::s32: return work(std::integral_constant<Kind, Kind::s32>());
    default: return work(std::integral_constant<Kind, Kind::f32>());
  }
}

// d[16][n] += a[16][k] b[k][n]; whole numbers below 2^24 stay exact, so that it serves s8 too. Sums of
// 8 rows and 8 columns, of which n is a multiple, stay in registers.
TW_FAST void multiply(float *d, const float *a, const float *b, u32 n, u32 k) {
  typedef float Vector __attribute__((vector_size(32), aligned(4), may_alias));
  for (u32 top = 0; top < 16; top += 8)
    for (u32 column = 0; column < n; column += 8) {
      Vector sums[8];
      for (u32 row = 0; row < 8; row++) sums[row] = *(const Vector *)&d[(top + row) * n + column];
      for (u32 i = 0; i < k; i++) {
        const Vector right = *(const Vector *)&b[i * n + column];
        for (u32 row = 0; row < 8; row++) sums[row] += a[(top + row) * k + i] * right;
      }
      for (u32 row = 0; row < 8; row++) *(Vector *)&d[(top + row) * n + column] = sums[row];
    }
}

// The same as wgmma adds products of float8: each addend, the sum before included, is cut off 13 bits
// below the leading bit of the largest one (measured on an H200: a sum of 512 products of .8125 and
// .6875 loses 4.0, one of 128 nothing). NaN and infinities are added as they are.
TW_FAST void multiply_cut_off(float *d, const float *a, const float *b, u32 n, u32 k) {
  float most[256], plain[256], units[256], sums[256];
  for (u32 row = 0; row < 16; row++, d += n, a += k) {
    for (u32 column = 0; column < n; column++) most[column] = __builtin_fabsf(plain[column] = d[column]);
    for (u32 i = 0; i < k; i++)
      for (u32 column = 0; column < n; column++) {
        const float x = a[i] * b[i * n + column], size = __builtin_fabsf(x);
        plain[column] += x;
        most[column] = most[column] < size ? size : most[column];
      }
    for (u32 column = 0; column < n; column++) {
      const u32 exponent = __builtin_bit_cast(u32, most[column]) & 0x7f800000u;
      units[column] = exponent ? 8192 / __builtin_bit_cast(float, exponent) : 0;
      sums[column] = (i32)(d[column] * units[column]);
    }
    for (u32 i = 0; i < k; i++)
      for (u32 column = 0; column < n; column++)
        sums[column] += (i32)(a[i] * b[i * n + column] * units[column]);
    for (u32 column = 0; column < n; column++) {
      const bool finite = __builtin_fabsf(plain[column]) <= 0x1.fffffep127f;
      if (finite && units[column]) d[column] = sums[column] / units[column];
      else if (!finite) d[column] = plain[column];
    }
  }
}

// A fragment of A: 16 rows of k columns, spread over the registers of 32 lanes.
void gather_a(float *a, Kind kind, u32 k, const u32 *const *registers) {
  for_kind(kind, [=](auto constant) {
    constexpr u32 bytes = bytes_of(constant), per = 4 / bytes;
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 i = 0; i < 2 * k / (4 * per); i++)
        for (u32 e = 0; e < per; e++)
          a[(lane / 4 + i % 2 * 8) * k + lane % 4 * per + e + i / 2 * 4 * per] =
              decoded<constant>((const char *)&registers[lane][i] + e * bytes);
  });
}

void gather_b(float *b, Kind kind, u32 k, const u32 *const *registers) {
  for_kind(kind, [=](auto constant) {
    constexpr u32 bytes = bytes_of(constant), per = 4 / bytes;
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 i = 0; i < k / (4 * per); i++)
        for (u32 e = 0; e < per; e++)
          b[(lane % 4 * per + e + i * 4 * per) * 8 + lane / 4] =
              decoded<constant>((const char *)&registers[lane][i] + e * bytes);
  });
}

// The accumulators of 32 lanes as 16 rows of n.
void gather_d(float *sums, u32 n, void *const *d) {
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 i = 0; i < n / 2; i++)
      sums[(lane / 4 + i / 2 % 2 * 8) * n + i / 4 * 8 + lane % 4 * 2 + i % 2] = ((float *)d[lane])[i];
}

// Adds the product (16 rows of n) to the accumulators of 32 lanes, or sets them to it.
void scatter_d(const float *product, Kind kind, u32 n, void *const *d, bool accumulate) {
  for_kind(kind, [=](auto constant) {
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 i = 0; i < n / 2; i++) {
        const u32 row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float value = product[row * n + column];
        if constexpr (constant == Kind::s32) {
          i32 &x = ((i32 *)d[lane])[i];
          x = (accumulate ? x : 0) + (i32)value;
        } else if constexpr (constant == Kind::f32) {
          float &x = ((float *)d[lane])[i];
          x = (accumulate ? x : 0) + value;
        } else {
          u16 &x = ((u16 *)d[lane])[i];
          x = float_to_f16((accumulate ? f16_to_float(x) : 0) + value);
        }
      }
  });
}

// Address of element (row, column of K) of an operand behind a wgmma descriptor.
u32 described(u64 descriptor, u32 row, u32 k, u32 element, bool transposed) {
  const u32 start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
  const u32 stride = (descriptor >> 32 & 0x3fff) << 4, mode = descriptor >> 62;
  const u32 swizzle = mode == 0 ? 16 : 256 >> mode;  // bytes of a row; 16 is none
  u32 address;
  if (transposed) {
    const u32 per = swizzle / element;
    address = mode ? row / per * leading + k / 8 * stride : row / per * stride + k / 8 * leading;
    address += start + k % 8 * swizzle + row % per * element;
  } else {
    const u32 byte = k * element;
    address = start + row / 8 * stride + row % 8 * swizzle;
    address += mode ? byte : byte / 16 * leading + byte % 16;
  }
  const u32 mask = swizzle / 16 - 1;
  return address ^ ((address >> 7) & mask) << 4;
}

void check_descriptor(u64 descriptor) {
  const u32 mode = descriptor >> 62, start = (descriptor & 0x3fff) << 4;
  const u32 swizzle = mode == 0 ? 16 : 256 >> mode;
  if (mode && start % (8 * swizzle) >= swizzle)
    fault("crash", "a wgmma descriptor starts at byte %d of shared memory, within a group of 8 rows of %u bytes",
          (i32)(start - shared_start), swizzle);
}

// Elements of an operand of wgmma: of `rows` rows from `first` on, and k columns of K, that of row r and
// column i at to[r * row_step + i * k_step]. The 16 bytes that a swizzle moves lie together, along K or,
// if transposed, along the rows.
void gather_shared(float *to, Block &block, u64 descriptor, Kind kind, bool transposed, u32 first, u32 rows,
                   u32 k, u32 row_step, u32 k_step) {
  for_kind(kind, [=, &block](auto constant) {
    constexpr u32 bytes = bytes_of(constant), per = 16 / bytes;
    const u32 down = transposed ? per : 1, across = transposed ? 1 : per, step = transposed ? row_step : k_step;
    for (u32 row = 0; row < rows; row += down)
      for (u32 i = 0; i < k; i += across) {
        const u32 address = described(descriptor, first + row, i, bytes, transposed);
        const u8 *from = readable("wgmma", block, address, 16, true);
        for (u32 e = 0; e < per; e++) to[row * row_step + i * k_step + e * step] = decoded<constant>(from + e * bytes);
      }
  });
}

Warpgroup &this_group() {
  Fiber &fiber = *machine.current;
  return fiber.block->warpgroups[fiber.linear / 128];
}

}  // namespace

void ldmatrix(u32 *registers, u32 count, u32 from, bool transposed) {
  struct Argument { u32 *registers; u32 from; } mine{registers, from};
  by_warp("ldmatrix", &mine, [count, transposed](void **arguments) {
    u32 addresses[32];
    for (u32 lane = 0; lane < 32; lane++) addresses[lane] = ((Argument *)arguments[lane])->from;
    count_wavefronts(addresses, count * 8, 16);
    for (u32 matrix = 0; matrix < count; matrix++) {
      u16 values[8][8];
      for (u32 row = 0; row < 8; row++) {
        const u32 address = addresses[matrix * 8 + row];
        memcpy(values[row], readable("ldmatrix", owner("ldmatrix", address, false), address, 16, false), 16);
      }
      for (u32 lane = 0; lane < 32; lane++) {
        const u32 row = lane / 4, column = lane % 4 * 2;
        const u32 low = transposed ? values[column][row] : values[row][column];
        const u32 high = transposed ? values[column + 1][row] : values[row][column + 1];
        ((Argument *)arguments[lane])->registers[matrix] = low | high << 16;
      }
    }
  });
  perhaps_preempt(at_access);
}

void stmatrix(u32 to, const u32 *registers, u32 count, bool transposed) {
  struct Argument { const u32 *registers; u32 to; u16 rows[8]; } mine{registers, to, {}};
  by_warp("stmatrix", &mine, [count, transposed](void **arguments) {
    for (u32 matrix = 0; matrix < count; matrix++)
      for (u32 lane = 0; lane < 32; lane++)
        for (u32 e = 0; e < 2; e++) {
          const u32 major = lane / 4, minor = lane % 4 * 2 + e;
          const u32 row = transposed ? minor : major, column = transposed ? major : minor;
          const u32 value = ((Argument *)arguments[lane])->registers[matrix];
          ((Argument *)arguments[matrix * 8 + row])->rows[column] = value >> 16 * e;
        }
  });
  if (machine.current->lane < count * 8) shared_store(to, mine.rows, 16, false);
  sync_warp();
}

void mma(Kind d_kind, Kind a_kind, Kind b_kind, u32 k, void *d, const u32 *a, const u32 *b) {
  struct Argument { void *d; const u32 *a, *b; } mine{d, a, b};
  by_warp("mma", &mine, [=](void **arguments) {
    float left[16 * 32], right[32 * 8], product[16 * 8] = {};
    const u32 *as[32], *bs[32];
    void *ds[32];
    for (u32 lane = 0; lane < 32; lane++) {
      const auto &argument = *(Argument *)arguments[lane];
      as[lane] = argument.a;
      bs[lane] = argument.b;
      ds[lane] = argument.d;
    }
    gather_a(left, a_kind, k, as);
    gather_b(right, b_kind, k, bs);
    multiply(product, left, right, 8, k);
    scatter_d(product, d_kind, 8, ds, true);
  });
}

void wgmma(Kind d_kind, Kind a_kind, Kind b_kind, u32 n, u32 k, void *d, u64 a, const u32 *a_registers,
           u64 b, int accumulate, bool a_transposed, bool b_transposed) {
  struct Argument { void *d; const u32 *a; } mine{d, a_registers};
  const bool from_shared = !a_registers;
  if (from_shared) check_descriptor(a);
  check_descriptor(b);
  by_warpgroup("wgmma", &mine, [=](void **arguments) {
    Warpgroup &group = this_group();
    if (!group.fenced) fault("wrong_result", "wgmma before wgmma_fence()");
    std::vector<void *> ds(128);
    std::vector<const u32 *> as(128);
    for (u32 thread = 0; thread < 128; thread++) {
      ds[thread] = ((Argument *)arguments[thread])->d;
      as[thread] = ((Argument *)arguments[thread])->a;
    }
    Block *block = machine.current->block;
    Effect effect = [=, ds = std::move(ds), as = std::move(as)] {
      static float left[16 * 32], right[32 * 256], product[16 * 256];
      gather_shared(right, *block, b, b_kind, b_transposed, 0, n, k, 1, n);
      for (u32 warp = 0; warp < 4; warp++) {  // each holds 16 of the 64 rows
        if (from_shared) gather_shared(left, *block, a, a_kind, a_transposed, warp * 16, 16, k, k, 1);
        else gather_a(left, a_kind, k, &as[warp * 32]);
        memset(product, 0, 16 * n * sizeof(float));
        if (is_float8(a_kind) && d_kind == Kind::f32) {
          if (accumulate) gather_d(product, n, &ds[warp * 32]);
          multiply_cut_off(product, left, right, n, k);
          scatter_d(product, d_kind, n, &ds[warp * 32], false);
          continue;
        }
        multiply(product, left, right, n, k);
        scatter_d(product, d_kind, n, &ds[warp * 32], accumulate);
      }
    };
    // in order, since one may add to another's result
    if (group.products.empty() && now(Async::product)) effect();
    else group.products.open.push_back(std::move(effect));
  });
  perhaps_preempt(at_access);
}

void wgmma_fence() {
  by_warpgroup("wgmma_fence", nullptr, [](void **) { this_group().fenced = true; });
}

void wgmma_commit() {
  by_warpgroup("wgmma_commit", nullptr, [](void **) { this_group().products.commit(); });
}

void wgmma_wait(u32 pending) {
  by_warpgroup("wgmma_wait", nullptr, [pending](void **) { this_group().products.land(pending); });
  perhaps_preempt(at_meeting);
}

}  // namespace tw::emulator
