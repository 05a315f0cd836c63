// Keys of calls, as capture/keys.py makes them, without Python: bytes that are equal for calls that are alike.

#include <Python.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cmath>
#include <string>

namespace {

// The key of a call that is looked at. first: the call's first argument, which a later one may be once more.
struct Key {
  std::string bytes;
  PyObject* first = nullptr;

  template <typename T>
  void put(char kind, T value) {
    bytes.push_back(kind);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  // False of what has no key.
  bool add(PyObject* value) {
    if (THPVariable_CheckTypeExact(Py_TYPE(value))) return add_tensor(value);
    if (value == Py_None) return put('n', '0'), true;
    if (PyBool_Check(value)) return put('b', value == Py_True), true;
    if (PyLong_CheckExact(value)) return add_number(value);
    if (PyFloat_CheckExact(value)) return put('f', bucket(PyFloat_AS_DOUBLE(value))), true;
    if (PyList_Check(value) || PyTuple_Check(value)) return add_items(value);
    if (PyUnicode_CheckExact(value)) return add_text(value);
    if (THPDtype_Check(value) || THPLayout_Check(value) || THPMemoryFormat_Check(value)) return put('o', value), true;
    if (THPDevice_Check(value)) return add_device(reinterpret_cast<THPDevice*>(value)->device), true;
    if (THPGenerator_Check(value)) return put('g', '0'), true;
    return false;
  }

 private:
  // As of `bucket` in traces/text.py.
  static char bucket(double value) {
    if (std::isnan(value)) return '?';
    if (std::isinf(value)) return 'i';
    return value == 0 ? '0' : value == 1 ? '1' : value > 0 ? '+' : '-';
  }

  bool add_number(PyObject* value) {
    int overflow = 0;
    put('i', PyLong_AsLongLongAndOverflow(value, &overflow));
    return !overflow;
  }

  bool add_items(PyObject* value) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    put('l', size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!add(PySequence_Fast_GET_ITEM(value, i))) return false;
    }
    return true;
  }

  bool add_text(PyObject* value) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) return PyErr_Clear(), false;
    put('s', size);
    bytes.append(text, size);
    return true;
  }

  void add_device(const c10::Device& device) {
    put('d', device.type());
    put('.', device.index());
  }

  bool add_tensor(PyObject* value) {
    const at::Tensor& t = THPVariable_Unpack(value);
    if (!t.defined() || t.is_nested() || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
    put('t', t.scalar_type());
    put(value == first ? '=' : ':', t.layout());
    add_device(t.device());
    put('r', t.dim());
    add_sizes(t.sizes());
    if (t.layout() == c10::kStrided) {
      bytes.push_back(static_cast<char>(t.is_conj() + 2 * t.is_neg() + 4 * t._is_zerotensor()));
      add_sizes(t.strides());
    } else {
      bytes.push_back(t.is_sparse() && t.is_coalesced());
    }
    return true;
  }

  void add_sizes(at::IntArrayRef sizes) {
    bytes.append(reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof(int64_t));
  }
};

// What is found by the key of a call; a function of its arguments.
struct Finder {
  PyObject_HEAD
  PyObject* find;
};

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Key key;
  key.bytes.reserve(256);
  bool whole = true;
  try {
    for (Py_ssize_t i = 0; whole && i < PyTuple_GET_SIZE(args); ++i) {
      whole = key.add(PyTuple_GET_ITEM(args, i));
      if (!i) key.first = PyTuple_GET_ITEM(args, i);
    }
    PyObject *name = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (whole && kwargs && PyDict_Next(kwargs, &at, &name, &value)) {
      key.bytes.push_back('k');
      whole = key.add(name) && key.add(value);
    }
  } catch (const std::exception&) {
    whole = false;
  }
  if (!whole) return PyErr_SetString(PyExc_TypeError, "this call has no key"), nullptr;
  PyObject* bytes = PyBytes_FromStringAndSize(key.bytes.data(), static_cast<Py_ssize_t>(key.bytes.size()));
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

PyMethodDef methods[] = {{"finder", finder, METH_O, "What is found by the key of a call."}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "enablekit_keys", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_enablekit_keys() {
  PyObject* module = PyModule_Create(&definition);
  PyObject* type = module ? PyType_FromSpec(&spec) : nullptr;
  if (!type || PyModule_AddObject(module, "Finder", type) < 0) return nullptr;
  return module;
}
