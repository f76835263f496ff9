/* What a kernel demands of an array, and whether an array is so. */
#include <Python.h>
#include <stdint.h>

enum { MOST_RANK = 64 };

/* What is demanded of an array: bytes of an element and of all, and in units of elements the
   extents and then the steps of its `rank` dimensions. `code` and `bits` are DLPack's. Of indices,
   which lie without gaps, `most` is the largest one allowed, and `rises` says whether none is less
   than the one before it in memory; of other elements `most` is -1. */
typedef struct {
  int64_t code, bits, size, span, most, rises, rank, extents[];
} demand;

static const demand *next(const demand *d) { return (const demand *)(d->extents + 2 * d->rank); }

static int lies(const demand *d, const int64_t *shape, const int64_t *steps, int64_t unit) {
  const int64_t *right = d->extents + d->rank;
  for (int64_t i = 0; i < d->rank; i++)
    if (shape[i] != d->extents[i] || (shape[i] > 1 && steps[i] != right[i] * unit)) return 0;
  return 1;
}

/* Whether entries are from 0 to `most`, and never fall where they are to rise. Loops without an
   exit take several entries at a time. */
#define ARE_INDICES(SIGNED, UNSIGNED)                                                            \
  static int are_##SIGNED(const SIGNED *entries, int64_t count, UNSIGNED most, int rises) {      \
    UNSIGNED wrong = 0;                                                                          \
    for (int64_t i = 0; i < count; i++) wrong |= (UNSIGNED)entries[i] > most;                    \
    for (int64_t i = 1; rises && i < count; i++) wrong |= entries[i] < entries[i - 1];           \
    return !wrong;                                                                               \
  }
ARE_INDICES(int8_t, uint8_t)
ARE_INDICES(int32_t, uint32_t)
ARE_INDICES(int64_t, uint64_t)
ARE_INDICES(uint8_t, uint8_t)

/* Whether elements have no sign: DLPack's codes of unsigned numbers and of truth values. */
static int is_unsigned(const demand *d) { return d->code == 1 || d->code == 6; }

/* Whether the elements of an array are indices, if they are to be. */
static int holds(const demand *d, const void *address) {
  if (d->most < 0) return 1;
  if (is_unsigned(d)) return are_uint8_t((const uint8_t *)address, d->span, d->most, d->rises);
  if (d->size == sizeof(int64_t))
    return are_int64_t((const int64_t *)address, d->span / d->size, d->most, d->rises);
  if (d->size == sizeof(int8_t)) return are_int8_t((const int8_t *)address, d->span, d->most, d->rises);
  return are_int32_t((const int32_t *)address, d->span / d->size, d->most, d->rises);
}

/* Whether elements of the size may be as large as the largest index. */
static int has_room(const demand *d) {
  if (d->most < 0) return 1;
  if (d->size != sizeof(int8_t) && d->size != sizeof(int32_t) && d->size != sizeof(int64_t))
    return 0;
  return d->most >> (8 * d->size - !is_unsigned(d)) == 0;
}

/* Whether the demands are of as many arrays, and end where their bytes do. */
static int is_whole(PyObject *demands, Py_ssize_t arrays) {
  const char *at = PyBytes_AS_STRING(demands), *end = at + PyBytes_GET_SIZE(demands);
  for (; arrays > 0; arrays--) {
    const demand *d = (const demand *)at;
    if (end - at < (Py_ssize_t)sizeof *d || d->size < 1 || d->rank < 0 || d->rank > MOST_RANK)
      return 0;
    if (!has_room(d)) return 0;
    at += sizeof *d + 2 * d->rank * sizeof *d->extents;
    if (at > end) return 0;
  }
  return at == end;
}
