/* `Caller` of caller.py, which says what it is for: a kernel's call on arrays that it can check by
   itself, without an interpreter between. All others it hands on. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdint.h>

#include "caller.h"

enum { LINE = 64, MOST_ARRAYS = 32, ON_CPU = 1 /* kDLCPU of dlpack.h */ };

_Static_assert(sizeof(npy_intp) == sizeof(int64_t), "NumPy's extents are read as int64_t");

/* DLTensor and the head of DLPackExchangeAPI, of dlpack.h 1.3. */
typedef struct {
  char *data;
  int32_t device_type, device_id, rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *steps;
  uint64_t offset;
} dl_tensor;
typedef struct {
  uint32_t major, minor;
  void *previous, *allocate, *from_object, *to_object;
  int (*view)(PyObject *object, dl_tensor *out);
} dl_exchange;

/* Of torch, once `tensors` told: the kinds of tensors that are taken, and what is asked of them. */
static struct {
  PyObject *tensor, *parameter, *is_neg, *requires_grad, *is_grad_enabled;
  const dl_exchange *exchange;
} torch;

static PyObject *out_name;

/* A kernel with all that a call of it takes. */
typedef struct {
  PyObject_HEAD
  void (*entry)(void *const *buffers, void *workspace, const void *runtime);
  const void *runtime;
  int inputs, outputs;
  PyObject *dtypes, *demands;        /* a tuple, and bytes: the inputs', then the outputs' */
  PyObject *new_array, *new_tensor;  /* make an output, if there is one only */
  PyObject *workspaces, *new_workspace;
  int64_t extent;    /* of an open axis: a pointer to it follows those of the arrays */
  PyObject *closely; /* takes whatever is not taken here */
} caller;

static char *in_array(const demand *d, PyObject *dtype, int written, PyArrayObject *array) {
  if ((PyObject *)PyArray_DESCR(array) != dtype || PyArray_NDIM(array) != d->rank) return NULL;
  if (written && !(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE)) return NULL;
  const int64_t *shape = (const int64_t *)PyArray_DIMS(array);
  const int64_t *steps = (const int64_t *)PyArray_STRIDES(array);
  return lies(d, shape, steps, d->size) ? PyArray_BYTES(array) : NULL;
}

/* Whether `found` is `wanted`; takes its reference. */
static int is(PyObject *found, PyObject *wanted) {
  Py_XDECREF(found); /* of one of the constants of Python, which stay */
  return found == wanted;
}

/* Whether the values are those in memory, and no gradients are wanted where torch's mode `tracks`
   them. */
static int is_plain(PyObject *tensor, int tracks) {
  PyObject *grad = torch.requires_grad, *type = (PyObject *)Py_TYPE(tensor);
  return is(PyObject_Vectorcall(torch.is_neg, &tensor, 1, NULL), Py_False) &&
         (!tracks || is(Py_TYPE(grad)->tp_descr_get(grad, tensor, type), Py_False));
}

static char *in_tensor(const demand *d, PyObject *tensor, int tracks) {
  dl_tensor t;
  if (torch.exchange->view(tensor, &t)) return NULL;
  if (t.device_type != ON_CPU || t.code != d->code || t.bits != d->bits || t.lanes != 1) return NULL;
  if (t.rank != d->rank || !lies(d, t.shape, t.steps, 1) || !is_plain(tensor, tracks)) return NULL;
  return t.data ? t.data + t.offset : NULL;
}

static int is_tensor(PyObject *array) {
  PyObject *type = (PyObject *)Py_TYPE(array);
  return torch.exchange && (type == torch.tensor || type == torch.parameter);
}

/* Addresses of all arrays, each checked; 0 if one needs a closer look. */
static int look(const caller *self, PyObject *const *arrays, void **addresses) {
  const demand *d = (const demand *)PyBytes_AS_STRING(self->demands), *demands[MOST_ARRAYS];
  int tracks = -1; /* not asked yet */
  for (int i = 0; i < self->inputs + self->outputs; i++) {
    int written = i >= self->inputs;
    char *address = NULL;
    if (PyArray_CheckExact(arrays[i]))
      address = in_array(d, PyTuple_GET_ITEM(self->dtypes, i), written, (PyArrayObject *)arrays[i]);
    else if (is_tensor(arrays[i])) {
      if (tracks < 0) tracks = !is(PyObject_CallNoArgs(torch.is_grad_enabled), Py_False);
      address = in_tensor(d, arrays[i], tracks);
    }
    if (!address) PyErr_Clear(); /* of a tensor that does not say: it is asked again */
    if (!address || (uintptr_t)address % d->size) return 0;
    for (int j = 0; written && j < i; j++) {
      char *other = addresses[j];
      if (other < address + d->span && address < other + demands[j]->span) return 0;
    }
    addresses[i] = address;
    demands[i] = d;
    d = next(d);
  }
  return 1;
}

/* An idle workspace or a new one. */
static PyObject *take(caller *self) {
  PyObject *idle = self->workspaces;
  Py_ssize_t last = PyList_GET_SIZE(idle) - 1;
  if (last < 0) return PyObject_CallNoArgs(self->new_workspace);
  PyObject *workspace = Py_NewRef(PyList_GET_ITEM(idle, last));
  if (PyList_SetSlice(idle, last, last + 1, NULL)) Py_CLEAR(workspace);
  return workspace;
}

/* Whether the inputs hold such indices as they are to. */
static int hold(const caller *self, void *const *addresses) {
  const demand *d = (const demand *)PyBytes_AS_STRING(self->demands);
  for (int i = 0; i < self->inputs; i++, d = next(d))
    if (!holds(d, addresses[i])) return 0;
  return 1;
}

/* Runs the kernel; -1 with an error, or without one if an index needs a closer look. */
static int run(caller *self, void **addresses) {
  PyObject *workspace = self->new_workspace == Py_None ? NULL : take(self);
  char *scratch = NULL;
  if (self->new_workspace != Py_None) {
    if (!workspace) return -1;
    scratch = PyArray_BYTES((PyArrayObject *)workspace);
    scratch += -(uintptr_t)scratch % LINE;
  }
  int fit;
  addresses[self->inputs + self->outputs] = &self->extent;
  Py_BEGIN_ALLOW_THREADS
  fit = hold(self, addresses);
  if (fit) self->entry(addresses, scratch, self->runtime);
  Py_END_ALLOW_THREADS
  int failed = workspace && PyList_Append(self->workspaces, workspace);
  Py_XDECREF(workspace);
  return failed || !fit ? -1 : 0;
}

/* A new output of the first input's kind; NULL if there are several, or with an error. */
static PyObject *new_output(const caller *self, PyObject *const *arrays) {
  if (self->outputs > 1 || !self->inputs) return NULL;
  if (PyArray_CheckExact(arrays[0])) return PyObject_CallNoArgs(self->new_array);
  return is_tensor(arrays[0]) ? PyObject_CallNoArgs(self->new_tensor) : NULL;
}

/* The result, a new reference; NULL if the call needs a closer look, or with an error. */
static PyObject *call_at_once(caller *self, PyObject *given, PyObject *named) {
  PyObject *arrays[MOST_ARRAYS], *out = NULL;
  void *addresses[MOST_ARRAYS + 1];
  if (PyTuple_GET_SIZE(given) != self->inputs) return NULL;
  if (named && PyDict_GET_SIZE(named)) {
    if (PyDict_GET_SIZE(named) > 1 || !(out = PyDict_GetItemWithError(named, out_name)))
      return NULL;
  }
  for (int i = 0; i < self->inputs; i++) arrays[i] = PyTuple_GET_ITEM(given, i);
  out = out && out != Py_None ? Py_NewRef(out) : new_output(self, arrays);
  if (!out) return NULL;
  PyObject *const *outs = &out;
  int fit = self->outputs == 1;
  if (!fit && PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == self->outputs) {
    outs = ((PyTupleObject *)out)->ob_item;
    fit = 1;
  }
  for (int i = 0; fit && i < self->outputs; i++) arrays[self->inputs + i] = outs[i];
  if (!fit || !look(self, arrays, addresses) || run(self, addresses)) Py_CLEAR(out);
  return out;
}

static PyObject *call(caller *self, PyObject *given, PyObject *named) {
  PyObject *out = call_at_once(self, given, named);
  return out || PyErr_Occurred() || !self->closely ? out
                                                   : PyObject_Call(self->closely, given, named);
}

static PyObject *new_caller(PyTypeObject *type, PyObject *given, PyObject *Py_UNUSED(named)) {
  unsigned long long entry, runtime;
  PyObject *dtypes, *demands, *array, *tensor, *workspace, *idle, *closely;
  int inputs;
  long long extent;
  if (!PyArg_ParseTuple(given, "KKiO!SOOOO!LO", &entry, &runtime, &inputs, &PyTuple_Type,
                        &dtypes, &demands, &array, &tensor, &workspace, &PyList_Type, &idle,
                        &extent, &closely))
    return NULL;
  Py_ssize_t arrays = PyTuple_GET_SIZE(dtypes);
  if (inputs < 0 || inputs >= arrays || arrays > MOST_ARRAYS || !is_whole(demands, arrays)) {
    PyErr_SetString(PyExc_ValueError, "demands are eight numbers an array, and two a dimension");
    return NULL;
  }
  caller *self = (caller *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->entry = (void (*)(void *const *, void *, const void *))(uintptr_t)entry;
  self->runtime = (const void *)(uintptr_t)runtime;
  self->inputs = inputs;
  self->outputs = (int)arrays - inputs;
  self->dtypes = Py_NewRef(dtypes);
  self->demands = Py_NewRef(demands);
  self->new_array = Py_NewRef(array);
  self->new_tensor = Py_NewRef(tensor);
  self->new_workspace = Py_NewRef(workspace);
  self->extent = extent;
  self->closely = Py_NewRef(closely);
  self->workspaces = Py_NewRef(idle);
  return (PyObject *)self;
}

static int traverse(caller *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->dtypes);
  Py_VISIT(self->new_array);
  Py_VISIT(self->new_tensor);
  Py_VISIT(self->new_workspace);
  Py_VISIT(self->workspaces);
  Py_VISIT(self->closely);
  return 0;
}

/* Drops what may lead back to it. */
static int clear(caller *self) { Py_CLEAR(self->closely); return 0; }

static void deallocate(caller *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->closely);
  Py_CLEAR(self->dtypes);
  Py_CLEAR(self->demands);
  Py_CLEAR(self->new_array);
  Py_CLEAR(self->new_tensor);
  Py_CLEAR(self->new_workspace);
  Py_CLEAR(self->workspaces);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_new, new_caller},   {Py_tp_call, call},
                              {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
                              {Py_tp_dealloc, deallocate}, {0, NULL}};

static PyType_Spec spec = {.name = "caller.Caller",
                           .basicsize = sizeof(caller),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                           .slots = slots};

/* From then on, tensors of exactly two types are taken, too. */
static PyObject *tensors(PyObject *Py_UNUSED(module), PyObject *given) {
  PyObject *capsule, *tensor, *parameter, *is_neg, *requires_grad, *is_grad_enabled;
  if (!PyArg_ParseTuple(given, "OOOOOO", &capsule, &tensor, &parameter, &is_neg, &requires_grad,
                        &is_grad_enabled))
    return NULL;
  const dl_exchange *exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  if (!exchange) return NULL;
  if (exchange->major != 1 || !Py_TYPE(requires_grad)->tp_descr_get) Py_RETURN_FALSE;
  torch.tensor = Py_NewRef(tensor);
  torch.parameter = Py_NewRef(parameter);
  torch.is_neg = Py_NewRef(is_neg);
  torch.requires_grad = Py_NewRef(requires_grad);
  torch.is_grad_enabled = Py_NewRef(is_grad_enabled);
  torch.exchange = exchange;
  Py_RETURN_TRUE;
}

static int prepare(PyObject *module) {
  import_array1(-1);
  out_name = PyUnicode_InternFromString("out");
  PyObject *type = PyType_FromSpec(&spec);
  int failed = !out_name || !type || PyModule_AddObjectRef(module, "Caller", type);
  Py_XDECREF(type);
  return failed ? -1 : 0;
}

static PyMethodDef methods[] = {{"tensors", tensors, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, prepare}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "caller", .m_methods = methods, .m_slots = module_slots};

PyMODINIT_FUNC PyInit_caller(void) { return PyModuleDef_Init(&definition); }
