/* The operators `tilewright::run` on the CPU in C++: `native.py` says what it is for. It calls
   torch through the C functions of its stable ABI (torch 2.10 and later), which it finds in the library
   that is loaded, so that it needs none of torch's headers and is built once for all its versions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "caller.h"

namespace {

constexpr uint64_t kAbi = (2ULL << 56) | (10ULL << 48); /* torch 2.10, whose conventions these are */
constexpr size_t kLine = 64;

typedef uint64_t Value; /* StableIValue */
typedef void *Handle;   /* of a tensor, a list, a text or a library */
typedef void (*Boxed)(Value *stack, uint64_t arguments, uint64_t results); /* an operator */

/* The functions of the stable ABI that are used; each returns 0 if it succeeds. */
#define TORCH_FUNCTIONS(X)                                                                          \
  X(aoti_torch_library_init_impl, (const char *, const char *, const char *, uint32_t, Handle *))   \
  X(torch_library_impl, (Handle, const char *, Boxed, uint64_t))                                    \
  X(torch_list_size, (Handle, size_t *))                                                            \
  X(torch_list_get_item, (Handle, size_t, Value *))                                                 \
  X(torch_delete_list, (Handle))                                                                    \
  X(torch_new_list_reserve_size, (size_t, Handle *))                                                \
  X(torch_list_push_back, (Handle, Value))                                                          \
  X(torch_new_string_handle, (const char *, size_t, Handle *))                                      \
  X(torch_call_dispatcher, (const char *, const char *, Value *, uint64_t))                         \
  X(torch_string_length, (Handle, size_t *))                                                        \
  X(torch_string_c_str, (Handle, const char **))                                                    \
  X(torch_delete_string, (Handle))                                                                  \
  X(torch_get_num_threads, (uint32_t *))                                                            \
  X(aoti_torch_get_data_ptr, (Handle, void **))                                                     \
  X(aoti_torch_get_dim, (Handle, int64_t *))                                                        \
  X(aoti_torch_get_sizes, (Handle, int64_t **))                                                     \
  X(aoti_torch_get_strides, (Handle, int64_t **))                                                   \
  X(aoti_torch_get_dtype, (Handle, int32_t *))                                                      \
  X(aoti_torch_get_device_type, (Handle, int32_t *))                                                \
  X(aoti_torch_empty_strided,                                                                       \
    (int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, Handle *))               \
  X(aoti_torch_delete_tensor_object, (Handle))
#define DECLARE(name, parameters) int32_t(*name) parameters;
struct {
  TORCH_FUNCTIONS(DECLARE)
} torch;

int32_t on_cpu; /* torch's number of the CPU among devices */

/* What leads calls past autograd; null in a torch that lacks one of them. */
struct {
  bool (*is_recording)();                         /* whether gradients are wanted here at all */
  void (*exclude)(uint16_t key, bool excluded);   /* a dispatch key, in this thread */
  const char *(*problem)();                       /* the words of torch's last error */
  uint16_t key;                                   /* of autograd */
} autograd;

void check(int32_t failed, const char *what) {
  if (failed) throw std::runtime_error(std::string("tilewright: torch refuses ") + what);
}

/* Tensors that are given up at the end. */
struct Tensors {
  std::vector<Handle> all;
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  Tensors &operator=(const Tensors &) = delete;
  ~Tensors() {
    for (Handle tensor : all) torch.aoti_torch_delete_tensor_object(tensor);
  }
  void take(Handle tensor) { all.push_back(tensor); }
  void take_list(Handle list) {
    size_t count = 0;
    Value item;
    check(torch.torch_list_size(list, &count), "a list");
    all.reserve(all.size() + count);
    for (size_t i = 0; i < count; i++)
      if (!torch.torch_list_get_item(list, i, &item)) take((Handle)item);
    check(torch.torch_delete_list(list), "a list");
  }
};

std::string taken_text(Handle text) {
  size_t length = 0;
  const char *letters = "";
  torch.torch_string_length(text, &length);
  torch.torch_string_c_str(text, &letters);
  std::string copy(letters, length);
  torch.torch_delete_string(text);
  return copy;
}

std::string listed(const int64_t *numbers, int64_t count) {
  std::string text = "(";
  for (int64_t i = 0; i < count; i++) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + ")";
}

/* A kernel with all that a call of it takes. */
struct Plan {
  void (*entry)(void *const *buffers, void *workspace, const void *runtime);
  std::string elsewhere; /* the operator that computes the key instead, if there is one */
  const void *runtime;
  size_t workspace_bytes;
  std::vector<size_t> order;  /* of each input of the kernel, the operand that it is */
  std::vector<int64_t> words; /* demands on the operands, then on the outputs */
  std::vector<const demand *> demands;
  std::vector<int32_t> dtypes;
  std::vector<std::string> names; /* of element types */
  size_t inputs;

  std::mutex guard;
  std::vector<char *> idle; /* workspaces */

  char *address(size_t place, Handle tensor) const {
    const demand *d = demands[place];
    int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
    int32_t dtype = -1, device = -1;
    void *found = nullptr;
    torch.aoti_torch_get_dim(tensor, &rank);
    torch.aoti_torch_get_sizes(tensor, &sizes);
    torch.aoti_torch_get_strides(tensor, &strides);
    torch.aoti_torch_get_dtype(tensor, &dtype);
    torch.aoti_torch_get_device_type(tensor, &device);
    check(torch.aoti_torch_get_data_ptr(tensor, &found), "a tensor without elements in memory");
    if (device != on_cpu || dtype != dtypes[place] || rank != d->rank || !lies(d, sizes, strides, 1))
      throw std::runtime_error(misfit(place, device, dtype, rank, sizes, strides));
    if (!found || (uintptr_t)found % d->size)
      throw std::runtime_error(called(place) + " is not aligned to its elements");
    return (char *)found;
  }

  std::string called(size_t place) const {
    std::string kind = place < inputs ? "operand " : "output ";
    return "tilewright: " + kind + std::to_string(place < inputs ? place : place - inputs);
  }

  std::string misfit(size_t place, int32_t device, int32_t dtype, int64_t rank, const int64_t *sizes,
                     const int64_t *strides) const {
    const demand *d = demands[place];
    std::string other = device != on_cpu         ? "is on another device, and "
                        : dtype != dtypes[place] ? "is of another dtype, and "
                                                 : "";
    return called(place) + " " + other + "has shape " + listed(sizes, rank) + " and strides " +
           listed(strides, rank) + "; allowed: " + names[place] + " on the CPU of shape " +
           listed(d->extents, d->rank) + " and strides " + listed(d->extents + d->rank, d->rank);
  }

  char *workspace() {
    if (!workspace_bytes) return nullptr;
    std::lock_guard<std::mutex> lock(guard);
    if (!idle.empty()) {
      char *last = idle.back();
      idle.pop_back();
      return last;
    }
    size_t bytes = (workspace_bytes + kLine - 1) / kLine * kLine;
    char *made = (char *)aligned_alloc(kLine, bytes);
    if (!made) throw std::runtime_error("tilewright: no memory for a workspace");
    return (char *)memset(made, 0, bytes);
  }

  void put_back(char *space) {
    if (!space) return;
    std::lock_guard<std::mutex> lock(guard);
    idle.push_back(space);
  }

  Handle new_output(size_t place) const {
    const demand *d = demands[place];
    Handle made = nullptr;
    check(torch.aoti_torch_empty_strided(d->rank, d->extents, d->extents + d->rank, dtypes[place],
                                         on_cpu, 0, &made),
          "memory for an output");
    return made;
  }

  /* Outputs share no byte with any other array. */
  void check_apart(const std::vector<char *> &at) const {
    for (size_t i = inputs; i < at.size(); i++)
      for (size_t j = 0; j < i; j++)
        if (at[j] < at[i] + demands[i]->span && at[i] < at[j] + demands[j]->span)
          throw std::runtime_error(called(i) + " shares memory with another tensor");
  }

  void run(const std::vector<Handle> &given, const std::vector<Handle> &outputs) {
    if (given.size() != inputs)
      throw std::runtime_error("tilewright: " + std::to_string(given.size()) +
                               " operands are given; allowed: " + std::to_string(inputs));
    std::vector<char *> at;
    at.reserve(demands.size());
    for (size_t i = 0; i < inputs; i++) at.push_back(address(i, given[i]));
    for (size_t i = 0; i < outputs.size(); i++) at.push_back(address(inputs + i, outputs[i]));
    check_apart(at);
    for (size_t i = 0; i < inputs; i++)
      if (!holds(demands[i], at[i]))
        throw std::runtime_error(called(i) + " has an index beyond its limits, or out of order");
    std::vector<void *> buffers;
    buffers.reserve(demands.size());
    for (size_t place : order) buffers.push_back(at[place]);
    for (size_t i = inputs; i < at.size(); i++) buffers.push_back(at[i]);
    char *space = workspace();
    entry(buffers.data(), space, runtime);
    put_back(space);
  }
};

/* Plans by key and number of threads. None is ever freed, for a call may be using it. */
std::mutex table_guard;
std::unordered_map<std::string, std::unordered_map<uint32_t, Plan *>> table;
PyObject *resolve; /* puts the plan of a key and a number of threads into the table */

Plan *known(const std::string &key, uint32_t threads) {
  std::lock_guard<std::mutex> lock(table_guard);
  auto row = table.find(key);
  if (row == table.end()) return nullptr;
  auto found = row->second.find(threads);
  return found == row->second.end() ? nullptr : found->second;
}

std::string error_text() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *text = value ? PyObject_Str(value) : nullptr;
  const char *letters = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string words = letters ? letters : "no kernel was found";
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return words;
}

Plan &plan_of(const std::string &key) {
  uint32_t threads = 1;
  torch.torch_get_num_threads(&threads);
  if (Plan *found = known(key, threads)) return *found;
  std::string trouble;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *done = PyObject_CallFunction(resolve, "s#I", key.data(), (Py_ssize_t)key.size(), threads);
  if (!done) trouble = error_text();
  Py_XDECREF(done);
  PyGILState_Release(state);
  if (Plan *found = known(key, threads)) return *found;
  throw std::runtime_error("tilewright: " + trouble);
}

/* Call an operator by its name. It takes what is on the stack, and leaves its result there. */
void dispatch(const char *name, const char *overload, Value *stack) {
  if (!torch.torch_call_dispatcher(name, overload, stack, kAbi)) return;
  throw std::runtime_error(autograd.problem ? autograd.problem() : "tilewright: an operator fails");
}

/* Tensors as a list, which owns them from now on. */
Handle as_list(Tensors &tensors) {
  Handle list = nullptr;
  check(torch.torch_new_list_reserve_size(tensors.all.size(), &list), "a list");
  for (Handle &tensor : tensors.all) {
    check(torch.torch_list_push_back(list, (Value)tensor), "a list");
    tensor = nullptr;
  }
  tensors.all.clear();
  return list;
}

/* Let another operator compute a key: there is no kernel, or none yet, or one of several. */
void run_elsewhere(Value *stack, Tensors &given, const std::string &key, Tensors &out,
                   const std::string &name) {
  Handle text = nullptr;
  check(torch.torch_new_string_handle(key.data(), key.size(), &text), "a text");
  Value arguments[3] = {(Value)as_list(given), (Value)text, 0};
  bool has_out = !out.all.empty();
  if (has_out) arguments[2] = (Value)out.all.back();
  out.all.clear();
  dispatch(name.c_str(), has_out ? "out" : "", arguments);
  stack[0] = arguments[0];
}

/* The operator of several outputs: a list of operands, the key, and then a list of results. */
void run_several(Value *stack, uint64_t, uint64_t) {
  Tensors given, out;
  std::string key = taken_text((Handle)stack[1]);
  given.take_list((Handle)stack[0]);
  Plan &plan = plan_of(key);
  if (!plan.elsewhere.empty())
    return run_elsewhere(stack, given, key, out, plan.elsewhere + "_several");
  for (size_t i = plan.inputs; i < plan.demands.size(); i++) out.take(plan.new_output(i));
  plan.run(given.all, out.all);
  stack[0] = (Value)as_list(out);
}

/* The operators: the operands are a list or plain tensors, the key follows, and then `out`, if there
   is one. The stack is ours: it holds the result at the end. */
template <bool is_list, bool has_out>
void run(Value *stack, uint64_t arguments, uint64_t) {
  Tensors given, out;
  uint64_t last = arguments - 1;
  if (has_out) out.take((Handle)stack[last--]);
  std::string key = taken_text((Handle)stack[last]);
  if (is_list)
    given.take_list((Handle)stack[0]);
  else
    for (uint64_t i = 0; i < last; i++) given.take((Handle)stack[i]);
  Plan &plan = plan_of(key);
  if (!plan.elsewhere.empty()) return run_elsewhere(stack, given, key, out, plan.elsewhere);
  if (plan.demands.size() != plan.inputs + 1)
    throw std::runtime_error("tilewright: a workload of several outputs; allowed: run_several");
  if (!has_out) out.take(plan.new_output(plan.inputs));
  plan.run(given.all, out.all);
  stack[0] = (Value)out.all.back();
  out.all.clear();
}

/* Keeps autograd from being met again in this thread. */
struct BelowAutograd {
  BelowAutograd() { autograd.exclude(autograd.key, true); }
  ~BelowAutograd() { autograd.exclude(autograd.key, false); }
};

std::vector<std::string> overloads; /* of operators of plain tensors, by their number */

/* The operator of several outputs where autograd meets it first. */
void several_below_autograd(Value *stack, uint64_t, uint64_t) {
  if (autograd.is_recording()) return dispatch("tilewright::differentiable_several", "", stack);
  BelowAutograd guard;
  dispatch("tilewright::run_several", "", stack);
}

/* The operators where autograd meets them first: only what may want gradients goes through Python. */
template <bool is_list>
void run_below_autograd(Value *stack, uint64_t arguments, uint64_t) {
  if (!autograd.is_recording()) {
    BelowAutograd guard;
    return dispatch("tilewright::run", is_list ? "" : overloads[arguments - 1].c_str(), stack);
  }
  Tensors given;
  Value rest[2] = {stack[0], stack[arguments - 1]};
  if (!is_list) {
    for (uint64_t i = 0; i + 1 < arguments; i++) given.take((Handle)stack[i]);
    rest[0] = (Value)as_list(given);
  }
  dispatch("tilewright::differentiable", "", rest);
  stack[0] = rest[0];
}

void *library; /* torch's */

/* Find what leads past autograd, whose dispatch key has a number; whether all of it is there. */
bool finds_autograd(int key) {
  autograd.key = (uint16_t)key;
  *(void **)(&autograd.is_recording) = dlsym(library, "aoti_torch_grad_mode_is_enabled");
  *(void **)(&autograd.problem) = dlsym(library, "torch_exception_get_what_without_backtrace");
  *(void **)(&autograd.exclude) =
      dlsym(RTLD_DEFAULT, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb");
  if (!autograd.exclude) /* of a library that torch's loads for itself */
    *(void **)(&autograd.exclude) =
        dlsym(library, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb");
  return key >= 0 && autograd.is_recording && autograd.problem && autograd.exclude;
}

/* torch's number of an element type. */
int32_t dtype_number(const std::string &name) {
  int32_t (*number)() = (int32_t(*)())dlsym(library, ("aoti_torch_dtype_" + name).c_str());
  return number ? number() : -1;
}

/* put_operator(key, threads, name): another operator computes the key until a kernel is put. */
PyObject *put_operator(PyObject *, PyObject *given) {
  const char *key, *name;
  Py_ssize_t key_bytes;
  unsigned int threads;
  if (!PyArg_ParseTuple(given, "s#Is", &key, &key_bytes, &threads, &name)) return NULL;
  Plan *plan = new Plan();
  plan->elsewhere = name;
  std::lock_guard<std::mutex> lock(table_guard);
  table[std::string(key, key_bytes)][threads] = plan;
  Py_RETURN_NONE;
}

/* put(key, threads, entry, runtime, workspace_bytes, order, demands, dtypes) */
PyObject *put(PyObject *, PyObject *given) {
  const char *key;
  Py_ssize_t key_bytes;
  unsigned int threads;
  unsigned long long entry, runtime, workspace_bytes;
  PyObject *order, *demands, *dtypes;
  if (!PyArg_ParseTuple(given, "s#IKKKO!SO!", &key, &key_bytes, &threads, &entry, &runtime,
                        &workspace_bytes, &PyTuple_Type, &order, &demands, &PyTuple_Type, &dtypes))
    return NULL;
  std::unique_ptr<Plan> plan(new Plan());
  plan->entry = (void (*)(void *const *, void *, const void *))(uintptr_t)entry;
  plan->runtime = (const void *)(uintptr_t)runtime;
  plan->workspace_bytes = workspace_bytes;
  plan->inputs = PyTuple_GET_SIZE(order);
  size_t arrays = PyTuple_GET_SIZE(dtypes);
  if (plan->inputs >= arrays || !is_whole(demands, arrays)) {
    PyErr_SetString(PyExc_ValueError, "demands are eight numbers an array, and two a dimension");
    return NULL;
  }
  size_t bytes = PyBytes_GET_SIZE(demands);
  plan->words.resize(bytes / sizeof(int64_t));
  memcpy(plan->words.data(), PyBytes_AS_STRING(demands), bytes);
  const demand *d = (const demand *)plan->words.data();
  for (size_t i = 0; i < arrays; i++, d = next(d)) {
    plan->demands.push_back(d);
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(dtypes, i));
    if (!name) return NULL;
    plan->dtypes.push_back(dtype_number(name));
    plan->names.push_back(name);
  }
  for (size_t i = 0; i < plan->inputs; i++)
    plan->order.push_back(PyLong_AsSize_t(PyTuple_GET_ITEM(order, i)));
  if (PyErr_Occurred()) return NULL;
  std::lock_guard<std::mutex> lock(table_guard);
  table[std::string(key, key_bytes)][threads] = plan.release();
  Py_RETURN_NONE;
}

/* Register operators for a dispatch key: of a list, of plain tensors, of several outputs, and those of
   one output with `out`, where there are any. The library is kept for ever: to give it up would
   withdraw them. */
bool takes_all(const char *key, Boxed of_list, Boxed of_plain, Boxed several,
               Boxed list_out = nullptr, Boxed plain_out = nullptr) {
  Handle owner = nullptr;
  if (torch.aoti_torch_library_init_impl("tilewright", key, __FILE__, __LINE__, &owner)) return false;
  int32_t failed = torch.torch_library_impl(owner, "run_several", several, kAbi);
  for (size_t count = 0; count < overloads.size(); count++) {
    const std::string &overload = overloads[count];
    std::string name = count ? "." + overload : "", out = count ? overload + "_out" : "out";
    Boxed made = count ? of_plain : of_list, writing = count ? plain_out : list_out;
    failed |= torch.torch_library_impl(owner, ("run" + name).c_str(), made, kAbi);
    failed |= torch.torch_library_impl(owner, ("run_new" + name).c_str(), made, kAbi);
    if (writing) failed |= torch.torch_library_impl(owner, ("run." + out).c_str(), writing, kAbi);
  }
  return !failed;
}

/* registered(path, resolve, most, key): whether torch's library at a path, which is loaded, takes
   the operators, those of up to so many plain tensors among them; 2 if it takes those that autograd,
   whose dispatch key is given, meets first as well. */
PyObject *registered(PyObject *, PyObject *given) {
  const char *path;
  PyObject *function;
  int most, key;
  if (!PyArg_ParseTuple(given, "sOii", &path, &function, &most, &key)) return NULL;
  library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return PyLong_FromLong(0);
#define FIND(name, parameters)                            \
  *(void **)(&torch.name) = dlsym(library, #name);        \
  if (!torch.name) return PyLong_FromLong(0);
  TORCH_FUNCTIONS(FIND)
  int32_t (*cpu)() = (int32_t(*)())dlsym(library, "aoti_torch_device_type_cpu");
  if (!cpu) return PyLong_FromLong(0);
  on_cpu = cpu();
  resolve = Py_NewRef(function);
  overloads.push_back("");
  for (int count = 1; count <= most; count++) overloads.push_back("of" + std::to_string(count));
  if (!takes_all("CPU", run<true, false>, run<false, false>, run_several, run<true, true>,
                 run<false, true>))
    return PyLong_FromLong(0);
  if (!finds_autograd(key) || !takes_all("AutogradCPU", run_below_autograd<true>,
                                         run_below_autograd<false>, several_below_autograd))
    return PyLong_FromLong(1);
  return PyLong_FromLong(2);
}

PyMethodDef methods[] = {{"put", put, METH_VARARGS, NULL},
                         {"put_operator", put_operator, METH_VARARGS, NULL},
                         {"registered", registered, METH_VARARGS, NULL},
                         {NULL, NULL, 0, NULL}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native", NULL, 0, methods,
                          NULL, NULL, NULL, NULL};

} // namespace

PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&definition); }
