/* What a kernel demands of an array, and whether an array is so. */
#include <Python.h>
#include <stdint.h>

enum { MOST_RANK = 64 };

/* What is demanded of an array: bytes of an element and of all, and in units of elements the
   extents and then the steps of its `rank` dimensions. `code` and `bits` are DLPack's. Of indices,
   which lie without gaps, `most` is the largest one allowed, `rises` says whether none is less than
   the one before it in memory, and `last` is what the last one is to be, or -1; of other elements
   `most` is -1. */
typedef struct {
  int64_t code, bits, size, span, most, rises, last, rank, extents[];
} demand;

static const demand *next(const demand *d) { return (const demand *)(d->extents + 2 * d->rank); }

static int lies(const demand *d, const int64_t *shape, const int64_t *steps, int64_t unit) {
  const int64_t *right = d->extents + d->rank;
  for (int64_t i = 0; i < d->rank; i++)
    if (shape[i] != d->extents[i] || (shape[i] > 1 && steps[i] != right[i] * unit)) return 0;
  return 1;
}

/* Whether entries are from 0 to `most`, never fall where they are to rise, and end as they are to.
   Loops without an exit take several entries at a time. */
#define ARE_INDICES(SIGNED, UNSIGNED)                                                            \
  static int are_##SIGNED(const demand *d, const void *address) {                                \
    const SIGNED *entries = (const SIGNED *)address;                                             \
    const int64_t count = d->span / (int64_t)sizeof *entries;                                    \
    const UNSIGNED most = d->most;                                                               \
    UNSIGNED wrong = d->last >= 0 && entries[count - 1] != (SIGNED)d->last;                      \
    for (int64_t i = 0; i < count; i++) wrong |= (UNSIGNED)entries[i] > most;                    \
    for (int64_t i = 1; d->rises && i < count; i++) wrong |= entries[i] < entries[i - 1];        \
    return !wrong;                                                                               \
  }
ARE_INDICES(int8_t, uint8_t)
ARE_INDICES(int32_t, uint32_t)
ARE_INDICES(int64_t, uint64_t)
ARE_INDICES(uint8_t, uint8_t)
ARE_INDICES(uint16_t, uint16_t)

/* Whether elements have no sign: DLPack's codes of unsigned numbers and of truth values. */
static int is_unsigned(const demand *d) { return d->code == 1 || d->code == 6; }

/* Whether the elements of an array are indices, if they are to be. */
static int holds(const demand *d, const void *address) {
  if (d->most < 0) return 1;
  if (d->size == sizeof(int64_t)) return are_int64_t(d, address);
  if (d->size == sizeof(int32_t)) return are_int32_t(d, address);
  if (d->size == sizeof(uint16_t)) return are_uint16_t(d, address);
  return is_unsigned(d) ? are_uint8_t(d, address) : are_int8_t(d, address);
}

/* Whether elements of the size may be as large as the largest index. */
static int has_room(const demand *d) {
  if (d->most < 0) return 1;
  if (d->size == sizeof(uint16_t) ? !is_unsigned(d)
                                  : d->size != 1 && d->size != 4 && d->size != 8)
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
