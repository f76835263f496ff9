// A driver that computes nothing: memory is the host's, and launches are written down, one line
// each, in the file named by STUB_LOG. It proves what our calls hand to a driver, where there is none.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned id;
  char pad[4];
  unsigned value[16];
} Attribute;

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  Attribute *attributes;
  unsigned count;
} Config;

static _Thread_local void *context;
static int capturing;

static void say(const char *format, ...) {
  FILE *file = fopen(getenv("STUB_LOG"), "a");
  va_list rest;
  va_start(rest, format);
  vfprintf(file, format, rest);
  va_end(rest);
  fclose(file);
}

static int unknown(void) { return 999; }
static int fine(void) { return 0; }
static int version(int *v) { *v = 13000; return 0; }
static int device_get(int *device, int ordinal) { *device = ordinal; return 0; }
static int device_name(char *name, int length, int device) {
  snprintf(name, length, "NVIDIA H200");
  return 0;
}
static int device_attribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 2 : attribute == 38 ? 65536 : -1;
  return *value < 0 ? 1 : 0;
}
static int context_retain(void **made, int device) { *made = (void *)0x1000; return 0; }
static int context_get(void **current) { *current = context; return 0; }
static int context_set(void *wanted) { context = wanted; return 0; }
static int stream_create(void **stream, unsigned flags) { *stream = (void *)(0x2000ul + flags); return 0; }
static int begin_capture(void *stream, int mode) { say("begin %d\n", mode); return 0; }
static int end_capture(void *stream, void **graph) { say("end\n"); *graph = (void *)0x3000; return 0; }
static int instantiate(void **made, void *graph, unsigned long long flags) { *made = (void *)0x4000; return 0; }
static int graph_launch(void *graph, void *stream) { say("replay\n"); return 0; }
int cuStreamIsCapturing(void *stream, int *status) {
  if (!context) return 201;
  *status = getenv("STUB_CAPTURING") && *getenv("STUB_CAPTURING") == '1';
  return 0;
}
static int exchange(int *mode) { int old = capturing; capturing = *mode; *mode = old; return 0; }
static int event_create(void **event, unsigned flags) { *event = (void *)0x5000; return 0; }
static int record(void *event, void *stream, unsigned flags) { say("event %u\n", flags); return 0; }
static int elapsed(float *ms, void *start, void *end) { *ms = 2.0f; return 0; }
static int allocate(unsigned long long *address, size_t size) {
  if (size > 1ull << 36) return 2;
  *address = (unsigned long long)aligned_alloc(256, (size + 255) / 256 * 256);
  return 0;
}
static int release(unsigned long long address) { free((void *)address); return 0; }
static int set_bytes(unsigned long long to, unsigned char byte, size_t size, void *stream) {
  memset((void *)to, byte, size);
  return 0;
}
static int to_device(unsigned long long to, const void *from, size_t size) {
  memcpy((void *)to, from, size);
  return 0;
}
static int from_device(void *to, unsigned long long from, size_t size) {
  memcpy(to, (void *)from, size);
  return 0;
}
static int load(void **library, const void *code, void *o, void *v, unsigned n, void *p, void *q, unsigned m) {
  *library = (void *)code;
  return memcmp(code, "\177ELF", 4) ? 200 : 0;
}
static int get_kernel(void **kernel, void *library, const char *name) { *kernel = strdup(name); return 0; }
enum { PLAIN_SHARED = 48 << 10, MOST_SHARED = 227 << 10 };  // bytes, as on an H200
static struct { void *kernel; int shared; } allowed[64];
static int allowances;
enum { PLAIN_CLUSTER = 8, CLUSTER_DIMENSION = 4, LARGE_CLUSTERS = 14 };
static void *large_clusters;  // the kernel that was allowed them last
static int set_attribute(int attribute, int value, void *kernel, int device) {
  say("attribute %s %d %d\n", (char *)kernel, attribute, value);
  if (attribute == LARGE_CLUSTERS && value) large_clusters = kernel;
  if (attribute != 8) return 0;
  if (value > MOST_SHARED || allowances == 64) return 1;
  allowed[allowances].kernel = kernel;
  allowed[allowances++].shared = value;
  return 0;
}
static int shared_of(void *kernel) {
  int most = PLAIN_SHARED;
  for (int i = 0; i < allowances; i++)
    if (allowed[i].kernel == kernel) most = allowed[i].shared;
  return most;
}
int cuTensorMapEncodeTiled(unsigned long long *map, int type, unsigned rank, void *address, const unsigned long long *dims,
                  const unsigned long long *strides, const unsigned *box, const unsigned *steps, int interleave,
                  int swizzle, int promotion, int fill) {
  if ((unsigned long long)map % 64) return 1;
  memset(map, 0, 128);
  map[0] = (unsigned long long)address;
  say("map %d %u %p", type, rank, address);
  for (unsigned i = 0; i < rank; i++) say(" %llu/%u/%u", dims[i], box[i], steps[i]);
  for (unsigned i = 0; i + 1 < rank; i++) say(" +%llu", strides[i]);
  say(" %d %d %d\n", interleave, swizzle, fill);
  return 0;
}
int cuTensorMapEncodeIm2col(unsigned long long *map, int type, unsigned rank, void *address, const unsigned long long *dims,
                  const unsigned long long *strides, const int *lower, const int *upper, unsigned channels,
                  unsigned pixels, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  if ((unsigned long long)map % 64) return 1;
  say("windows %d %u %p %u/%u", type, rank, address, channels, pixels);
  for (unsigned i = 0; i < rank; i++) say(" %llu/%u", dims[i], steps[i]);
  for (unsigned i = 0; i + 1 < rank; i++) say(" +%llu", strides[i]);
  for (unsigned i = 0; i + 2 < rank; i++) say(" %d..%d", lower[i], upper[i]);
  say(" %d %d %d\n", interleave, swizzle, fill);
  return 0;
}
int cuLaunchKernelEx(const Config *c, void *kernel, void **parameters, void **extra) {
  if (!context) return 201;
  if (getenv("STUB_FAILS")) return 700;
  if (c->shared > shared_of(kernel)) return 1;
  if (c->block[0] * c->block[1] * c->block[2] > 1024) return 701;
  for (unsigned i = 0; i < c->count; i++) {
    const unsigned *sides = c->attributes[i].value, blocks = sides[0] * sides[1] * sides[2];
    if (c->attributes[i].id == CLUSTER_DIMENSION && blocks > PLAIN_CLUSTER && kernel != large_clusters) return 912;
  }
  say("launch %s %u,%u,%u %u,%u,%u %u %p", (char *)kernel, c->grid[0], c->grid[1], c->grid[2], c->block[0],
      c->block[1], c->block[2], c->shared, c->stream);
  for (unsigned i = 0; i < c->count; i++)
    say(" id%u:%u,%u,%u", c->attributes[i].id, c->attributes[i].value[0], c->attributes[i].value[1],
        c->attributes[i].value[2]);
  int count = getenv("STUB_PARAMETERS") ? atoi(getenv("STUB_PARAMETERS")) : 0;
  if (!strcmp(kernel, "tw_sweep")) count = 0;
  for (int i = 0; i < count; i++) say(" %#llx", *(unsigned long long *)parameters[i]);
  if (getenv("STUB_EXTENT") && strstr((char *)kernel, "_open")) say(" %d", *(int *)parameters[count]);
  say("\n");
  return 0;
}
static int error_string(int status, const char **text) {
  *text = status == 700 ? "an illegal memory access was encountered" : "some error";
  return 0;
}

static const struct { const char *name; void *function; } known[] = {
    {"cuInit", fine}, {"cuDriverGetVersion", version}, {"cuDeviceGet", device_get},
    {"cuDeviceGetName", device_name}, {"cuDeviceGetAttribute", device_attribute},
    {"cuDevicePrimaryCtxRetain", context_retain}, {"cuCtxGetCurrent", context_get},
    {"cuCtxSetCurrent", context_set}, {"cuStreamCreate", stream_create}, {"cuStreamDestroy", fine},
    {"cuStreamSynchronize", fine}, {"cuStreamBeginCapture", begin_capture},
    {"cuStreamEndCapture", end_capture}, {"cuStreamIsCapturing", cuStreamIsCapturing},
    {"cuThreadExchangeStreamCaptureMode", exchange}, {"cuGraphInstantiate", instantiate},
    {"cuGraphInstantiateWithFlags", instantiate}, {"cuGraphDestroy", fine},
    {"cuGraphExecDestroy", fine}, {"cuGraphLaunch", graph_launch}, {"cuEventCreate", event_create},
    {"cuEventRecordWithFlags", record}, {"cuEventSynchronize", fine}, {"cuEventElapsedTime", elapsed},
    {"cuMemAlloc", allocate}, {"cuMemFree", release}, {"cuMemsetD8Async", set_bytes},
    {"cuMemcpyHtoD", to_device}, {"cuMemcpyDtoH", from_device}, {"cuLibraryLoadData", load},
    {"cuLibraryGetKernel", get_kernel}, {"cuKernelSetAttribute", set_attribute},
    {"cuLaunchKernelEx", cuLaunchKernelEx}, {"cuGetErrorString", error_string},
};

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status) {
  *function = unknown;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name)) *function = known[i].function;
  if (status) *status = 0;
  return 0;
}
int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}
