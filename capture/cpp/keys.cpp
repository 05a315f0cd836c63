// Call keys for a recording, computed from the arguments that the dispatcher passes to Python. See capture/keys.py.

#include <Python.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>

#include "call_key.h"

namespace {

using enablekit::CallKey;

bool add(CallKey& key, PyObject* value);

bool add_int(CallKey& key, PyObject* value) {
  int overflow = 0;
  key.add(enablekit::kInt, PyLong_AsLongLongAndOverflow(value, &overflow));
  return !overflow;
}

bool add_items(CallKey& key, PyObject* items) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items);
  key.add(enablekit::kList, size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!add(key, PySequence_Fast_GET_ITEM(items, i))) return false;
  }
  return true;
}

bool add_text(CallKey& key, enablekit::Kind kind, PyObject* value) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value, &size);
  if (!text) return PyErr_Clear(), false;
  key.add_text(kind, text, size);
  return true;
}

bool add_tensor(CallKey& key, PyObject* value) {
  const at::Tensor& t = THPVariable_Unpack(value);
  if (!t.defined() || t.is_nested() || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
  key.add_tensor(t);
  return true;
}

// Appends a value to the key. Returns false if the value has no key.
bool add(CallKey& key, PyObject* value) {
  if (THPVariable_CheckTypeExact(Py_TYPE(value))) return add_tensor(key, value);
  if (value == Py_None) return key.add(enablekit::kNone, 0), true;
  if (PyBool_Check(value)) return key.add(enablekit::kBool, value == Py_True), true;
  if (PyLong_CheckExact(value)) return add_int(key, value);
  if (PyFloat_CheckExact(value)) return key.add_float(PyFloat_AS_DOUBLE(value)), true;
  if (PyComplex_CheckExact(value)) {
    return key.add_complex(PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)), true;
  }
  if (PyList_Check(value) || PyTuple_Check(value)) return add_items(key, value);
  if (PyUnicode_CheckExact(value)) return add_text(key, enablekit::kText, value);
  if (THPDevice_Check(value)) return key.add_device(reinterpret_cast<THPDevice*>(value)->device), true;
  if (THPDtype_Check(value) || THPLayout_Check(value) || THPMemoryFormat_Check(value)) {
    return key.add(enablekit::kObject, reinterpret_cast<int64_t>(value)), true;
  }
  if (THPGenerator_Check(value)) return key.add(enablekit::kObject, 0), true;
  return false;
}

// A Python callable that takes a call's arguments and returns find(key), with the key as bytes.
struct Finder {
  PyObject_HEAD
  PyObject* find;
};

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  thread_local CallKey key;
  key.clear();
  bool whole = true;
  try {
    for (Py_ssize_t i = 0; whole && i < PyTuple_GET_SIZE(args); ++i) whole = add(key, PyTuple_GET_ITEM(args, i));
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (whole && kwargs && PyDict_Next(kwargs, &at, &name, &value)) {
      whole = add_text(key, enablekit::kName, name) && add(key, value);
    }
    key.add_identities();
    key.add_buckets();
  } catch (const std::exception&) {
    whole = false;
  }
  if (!whole) return PyErr_SetString(PyExc_TypeError, "this call has no key"), nullptr;
  const auto size = static_cast<Py_ssize_t>(key.words.size() * sizeof(key.words[0]));
  PyObject* bytes = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(key.words.data()), size);
  if (!bytes) return nullptr;
  PyObject* found = PyObject_CallOneArg(reinterpret_cast<Finder*>(self)->find, bytes);
  Py_DECREF(bytes);
  return found;
}

void release(PyObject* self) {
  Py_XDECREF(reinterpret_cast<Finder*>(self)->find);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(release)},
    {0, nullptr},
};
PyType_Spec spec = {"enablekit_keys.Finder", sizeof(Finder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyObject* finder(PyObject* module, PyObject* find) {
  PyObject* type = PyObject_GetAttrString(module, "Finder");
  if (!type) return nullptr;
  auto* made = reinterpret_cast<Finder*>(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0));
  Py_DECREF(type);
  if (!made) return nullptr;
  Py_INCREF(find);
  made->find = find;
  return reinterpret_cast<PyObject*>(made);
}

PyMethodDef methods[] = {{"finder", finder, METH_O, "Return the function of a call's arguments that passes its key on."}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "enablekit_keys", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_enablekit_keys() {
  PyObject* module = PyModule_Create(&definition);
  PyObject* type = module ? PyType_FromSpec(&spec) : nullptr;
  if (!type || PyModule_AddObject(module, "Finder", type) < 0) return nullptr;
  return module;
}
