/* `start` of launcher.py, which says what it does and why it is here too: the same steps, without
   an interpreter between them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
  const void *configuration;
  void *function;
  void **parameters;
} launch;

/* What the bytes of a PreparedCall's `ticket` are. */
typedef struct {
  int (*entry)(const void *configuration, void *function, void **parameters, void **extra);
  int (*watch)(void *stream, int *captured); /* or NULL */
  void *stream;
  launch launches[];
} ticket;

/* Interned once: a lookup by such a name neither makes a string nor compares any. */
static struct {
  PyObject *alike, *current_stream, *data_ptr, *ticket;
} names;

/* The first of `known` that finds `arrays` alike, borrowed; NULL if none does, or with an error. */
static PyObject *likeness_of(PyObject *known, PyObject *arrays) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(known); i++) {
    PyObject *likeness = PyTuple_GET_ITEM(known, i);
    PyObject *alike = PyObject_GetAttr(likeness, names.alike);
    PyObject *answer = alike ? PyObject_CallObject(alike, arrays) : NULL;
    int found = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(alike);
    Py_XDECREF(answer);
    if (found) return found > 0 ? likeness : NULL;
  }
  return NULL;
}

/* What `tree` has under `number`; NULL if nothing, or with an error, as where `number` is NULL.
   Takes both references and gives one: the trees may be dropped while an array is asked. */
static PyObject *descend(PyObject *tree, PyObject *number) {
  PyObject *branch = number ? PyDict_GetItemWithError(tree, number) : NULL;
  Py_XINCREF(branch);
  Py_DECREF(tree);
  Py_XDECREF(number);
  return branch;
}

/* The call of this stream, whose reference it takes, and these arrays; NULL as above. */
static PyObject *find(PyObject *prepared, PyObject *stream, PyObject *arrays) {
  PyObject *found = descend(Py_NewRef(prepared), stream);
  for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(arrays); i++) {
    PyObject *array = PyTuple_GET_ITEM(arrays, i);
    found = descend(found, PyObject_CallMethodNoArgs(array, names.data_ptr));
  }
  return found;
}

/* The driver's status, the first that is not 0; None if the call is unfit. */
static PyObject *begin(PyObject *call) {
  PyObject *bytes = PyObject_GetAttr(call, names.ticket);
  if (!bytes) return NULL;
  Py_ssize_t rest = PyBytes_Check(bytes) ? PyBytes_GET_SIZE(bytes) - (Py_ssize_t)sizeof(ticket) : -1;
  if (rest < 0 || rest % sizeof(launch)) {
    Py_DECREF(bytes);
    PyErr_SetString(PyExc_TypeError, "a ticket is the bytes of three pointers, and three a launch");
    return NULL;
  }
  const ticket *t = (const ticket *)PyBytes_AS_STRING(bytes);
  const launch *end = t->launches + rest / sizeof(launch);
  int captured = 0, unfit, status = 0;
  Py_BEGIN_ALLOW_THREADS /* where its queue is full, the driver waits for the GPU */
  unfit = t->watch && (t->watch(t->stream, &captured) || captured);
  for (const launch *l = t->launches; !unfit && !status && l < end; l++)
    status = t->entry(l->configuration, l->function, l->parameters, NULL);
  Py_END_ALLOW_THREADS
  Py_DECREF(bytes);
  return unfit ? Py_NewRef(Py_None) : PyLong_FromLong(status);
}

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count) {
  if (count != 4 || !PyTuple_Check(given[0]) || !PyDict_Check(given[1]) ||
      !PyTuple_Check(given[2])) {
    PyErr_SetString(PyExc_TypeError, "start takes known, prepared, arrays and a stream or None");
    return NULL;
  }
  PyObject *known = given[0], *prepared = given[1], *arrays = given[2], *stream = given[3];
  PyObject *call = NULL, *likeness = likeness_of(known, arrays);
  if (likeness) {
    stream = stream == Py_None ? PyObject_CallMethodNoArgs(likeness, names.current_stream)
                               : Py_NewRef(stream);
    call = find(prepared, stream, arrays);
  }
  if (!call) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
  PyObject *status = begin(call);
  Py_DECREF(call); /* and not before: it keeps alive what the ticket points to */
  return status;
}

static int intern(PyObject *Py_UNUSED(module)) {
  names.alike = PyUnicode_InternFromString("alike");
  names.current_stream = PyUnicode_InternFromString("current_stream");
  names.data_ptr = PyUnicode_InternFromString("data_ptr");
  names.ticket = PyUnicode_InternFromString("ticket");
  return names.alike && names.current_stream && names.data_ptr && names.ticket ? 0 : -1;
}

static PyMethodDef methods[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, intern}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "launcher", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit_launcher(void) { return PyModuleDef_Init(&definition); }
