// What a call's launches are, once it is known: memory to allocate, kernels to launch, an answer to return.
#pragma once

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>

namespace enablekit {

namespace py = pybind11;
using c10::IValue;
using Given = std::vector<const at::Tensor*>;

struct Driver {  // of CUDA, whose C interface these are; opened when first needed, so that CPU machines load this file
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*error)(int, const char**);

  static const Driver& get() {
    static const Driver driver;
    return driver;
  }

  void check(int code) const {
    const char* text = nullptr;
    if (code) error(code, &text);
    TORCH_CHECK(!code, "CUDA's driver did not launch: ", text ? text : "unknown error", " (", code, ")");
  }

 private:
  template <typename F>
  static void find(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    TORCH_CHECK(function, "CUDA's driver has no ", name);
  }

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    TORCH_CHECK(library, "no CUDA driver: ", dlerror());
    find(library, launch, "cuLaunchKernel");
    find(library, retain, "cuDevicePrimaryCtxRetain");
    find(library, set_current, "cuCtxSetCurrent");
    find(library, error, "cuGetErrorString");
  }
};

constexpr int kInvalidContext = 201;  // CUDA_ERROR_INVALID_CONTEXT: this thread has none yet


constexpr uint64_t kDisguise = 0x555555555555555Bull;  // as in floats.py
constexpr uint64_t kStep = 4;                         // as in random_state.py

// The next number of a device's generator, as `random_state.draw` tells it; none if it has another seed.
inline std::optional<uint64_t> drawn(c10::Device device, int64_t seed) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  if (static_cast<int64_t>(generator.current_seed()) != seed) return std::nullopt;
  const uint64_t offset = generator.get_offset();
  generator.set_offset(offset + kStep);
  return (offset / kStep) ^ kDisguise;
}

inline uint64_t in_bits(double number, bool wide) {
  uint64_t bits = 0;
  const auto narrow = static_cast<float>(number);
  std::memcpy(&bits, wide ? static_cast<const void*>(&number) : &narrow, wide ? 8 : 4);
  return bits;
}

// A number as a kernel's parameter of this type of Triton's, in its lowest bytes. Throws for a type that is not known.
inline uint64_t packed(const std::string& type, const py::handle& value) {
  uint64_t bits = 0;
  if (type[0] == '*') return value.is_none() ? 0 : value.cast<uint64_t>();
  if (type == "fp64" || type == "fp32" || type == "f32") {
    bits = in_bits(value.cast<double>(), type == "fp64");
  } else if ((type[0] == 'i' || type[0] == 'u') && type != "u64") {
    const auto number = value.cast<int64_t>();
    std::memcpy(&bits, &number, 8);
  } else if (type == "u64") {
    bits = value.cast<uint64_t>();
  } else {
    TORCH_CHECK(false, "no parameter of type ", type);
  }
  return bits;
}

struct Patch {  // where a pointer goes, of which tensor, and how many bytes from it; or a float, numbered from the end
  uint32_t parameter;
  int32_t source;
  int64_t offset;
  bool wide;  // a float of 64 bits
};

using Floats = std::vector<double>;

struct Asked {  // a comparison that was made of a float, or of its absolute value, and its outcome
  uint32_t position;
  bool absolute;
  std::string name;
  double other;
  bool outcome;

  bool again(const Floats& floats) const {
    const double own = absolute ? std::fabs(floats[position]) : floats[position];
    if (name == "lt") return (own < other) == outcome;
    if (name == "le") return (own <= other) == outcome;
    if (name == "gt") return (own > other) == outcome;
    if (name == "ge") return (own >= other) == outcome;
    return (own == other) == (outcome == (name == "eq"));
  }
};

struct Fits {  // which floats a program is for: see floats.py. What is drawn comes after them, and always fits
  std::vector<std::vector<size_t>> alike;
  std::vector<std::pair<size_t, double>> fixed;
  std::vector<Asked> asked;
  std::optional<int64_t> seed;  // of the generator, where it draws

  bool operator()(const Floats& floats) const {
    for (double one : floats) {
      if (!std::isfinite(one)) return false;
    }
    for (const auto& [i, value] : fixed) {
      if (i >= floats.size() || !same(floats[i], value)) return false;
    }
    for (const auto& group : alike) {
      if (group[0] == floats.size()) continue;
      for (size_t i : group) {
        if (!same(floats[i], floats[group[0]])) return false;
      }
    }
    for (const auto& one : asked) {
      if (!one.again(floats)) return false;
    }
    return true;
  }

 private:
  static bool same(double one, double other) {
    return one == other && std::signbit(one) == std::signbit(other);
  }
};

struct Launch {
  void* function;
  unsigned grid[3], threads, shared;
  size_t scratch;  // bytes of memory of its own that each program of the grid has
  std::vector<uint64_t> values;
  std::vector<Patch> patches;

  void run(
      const uint64_t* pointers,
      const Floats& floats,
      std::optional<uint64_t> number,
      void* stream,
      c10::Device device) const {
    thread_local std::vector<uint64_t> filled;
    thread_local std::vector<void*> places;
    filled = values;
    for (const auto& patch : patches) {
      const size_t at = floats.size() + (number ? 1 : 0) + patch.source;  // of the floats, then what was drawn
      filled[patch.parameter] = patch.source >= 0 ? pointers[patch.source] + patch.offset
          : at == floats.size()                   ? *number
                                                  : in_bits(floats[at], patch.wide);
    }
    c10::DataPtr own;  // let go once it is launched: what is allocated then comes after it on the stream
    if (scratch) {
      own = c10::GetAllocator(device.type())->allocate(scratch * grid[0] * grid[1] * grid[2]);
      filled[filled.size() - 2] = reinterpret_cast<uint64_t>(own.get());
    }
    places.resize(filled.size());
    for (size_t i = 0; i < filled.size(); ++i) places[i] = &filled[i];
    const auto& driver = Driver::get();
    auto launched = [&] {
      return driver.launch(
          function, grid[0], grid[1], grid[2], threads, 1, 1, shared, stream, places.data(), nullptr);
    };
    int code = launched();
    if (code == kInvalidContext) {
      void* context = nullptr;
      driver.check(driver.retain(&context, device.index()));
      driver.check(driver.set_current(context));
      code = launched();
    }
    driver.check(code);
  }
};

struct Made {  // a tensor to allocate
  std::vector<int64_t> size, stride;
  at::ScalarType dtype;
};

struct Part {  // of an answer. number: of a tensor, first of the given ones, then of the made ones
  enum Kind { kTensor, kView, kTensors, kSparse, kValue } kind;
  size_t number = 0;
  std::vector<size_t> numbers;
  std::vector<int64_t> size, stride;
  int64_t offset = 0;  // of a view, in elements from the first of the tensor
  std::vector<Part> inner;  // indices and values of a sparse tensor
  bool coalesced = false;
  IValue value;
};

struct Footprint {  // of the given tensors of a call that writes to one: see overlap.py, which has the same function
  std::vector<uint64_t> spans;
  std::vector<bool> written;
  std::vector<size_t> alike;
  bool pointwise;

  bool may_clash(const std::vector<uint64_t>& pointers) const {
    using Span = std::tuple<uint64_t, size_t, bool, uint64_t>;  // begin, alike, whether it is only read, end
    thread_local std::vector<Span> sorted;
    sorted.clear();
    for (size_t i = 0; i < spans.size(); ++i) {
      if (spans[i]) sorted.emplace_back(pointers[i], alike[i], !written[i], pointers[i] + spans[i]);
    }
    std::sort(sorted.begin(), sorted.end());
    uint64_t end = 0, end_written = 0;  // of the spans before, which begin no later
    const Span* previous = nullptr;
    for (const auto& span : sorted) {
      const auto& [begin, same, is_read, stop] = span;
      const bool again = pointwise && is_read && previous && std::get<0>(*previous) == begin && std::get<1>(*previous) == same;
      if (!again && (begin < end_written || (!is_read && begin < end))) return true;
      end = std::max(end, stop);
      if (!is_read) end_written = std::max(end_written, stop);
      previous = &span;
    }
    return false;
  }
};

struct Program {
  std::vector<bool> aligned;
  std::optional<Footprint> footprint;
  std::optional<Fits> fits;  // where it takes the floats of each call
  std::vector<std::tuple<size_t, size_t, int64_t>> apart;  // two given tensors, and bytes from the first to the second
  std::vector<Made> made;
  std::vector<Launch> launches;
  std::vector<Part> answer;
  std::vector<PyObject*> hooks;  // lists of Triton's, kept for good: a program may end without the interpreter's lock
  mutable std::atomic<uint64_t> calls{0};

  // Appends the answer for these tensors on this device to `results`; false, with nothing done, where it does not fit.
  bool run(const Given& given, const Floats& floats, c10::Device device, std::vector<IValue>& results) const {
    thread_local std::vector<uint64_t> pointers;
    if (given.size() != aligned.size()) return false;
    pointers.resize(given.size() + made.size());
    for (size_t i = 0; i < given.size(); ++i) {
      pointers[i] = reinterpret_cast<uint64_t>(given[i]->data_ptr());
      if ((pointers[i] % 16 == 0) != aligned[i]) return false;
    }
    for (const auto& [a, b, bytes] : apart) {
      if (static_cast<int64_t>(pointers[b] - pointers[a]) != bytes) return false;
    }
    if (footprint && footprint->may_clash(pointers)) return false;
    for (const auto& hook : hooks) {
      if (Py_SIZE(hook)) return false;  // a profiler wants to know the arguments of each launch
    }
    std::optional<uint64_t> number;
    if (fits && fits->seed && !(number = drawn(device, *fits->seed))) return false;
    const auto* guard = c10::impl::getDeviceGuardImpl(device.type());
    std::optional<c10::DeviceGuard> elsewhere;
    if (device.has_index() && guard->getDevice() != device) elsewhere.emplace(device);
    void* stream = launches.empty() ? nullptr : guard->getStream(device).native_handle();
    std::vector<at::Tensor> own(made.size());
    const c10::DispatchKeySet keys(device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
    auto* allocator = c10::GetAllocator(device.type());
    auto allocate = [&](size_t at) {
      for (size_t i : beginning[at]) {
        own[i] = at::detail::empty_strided_generic(made[i].size, made[i].stride, allocator, keys, made[i].dtype);
        pointers[given.size() + i] = reinterpret_cast<uint64_t>(own[i].data_ptr());
      }
    };
    if (launches.empty()) allocate(0);
    for (size_t at = 0; at < launches.size(); ++at) {
      allocate(at);
      launches[at].run(pointers.data(), floats, number, stream, device);
      for (size_t i : ending[at]) own[i].reset();
    }
    for (const auto& part : answer) results.push_back(answered(part, given, own));
    calls.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  std::vector<std::vector<size_t>> beginning, ending;  // the made tensors to allocate before each launch, to let go after

 private:
  static IValue answered(const Part& part, const Given& given, const std::vector<at::Tensor>& own) {
    auto tensor = [&](size_t i) { return i < given.size() ? *given[i] : own[i - given.size()]; };
    if (part.kind == Part::kTensor) return tensor(part.number);
    if (part.kind == Part::kView) {
      const at::Tensor of = tensor(part.number);
      auto view = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(of.storage()), of.key_set(), of.dtype());
      view.unsafeGetTensorImpl()->set_sizes_and_strides(part.size, part.stride, of.storage_offset() + part.offset);
      return view;
    }
    if (part.kind == Part::kValue) return part.value;
    if (part.kind == Part::kSparse) {
      const auto indices = answered(part.inner[0], given, own).toTensor();
      const auto values = answered(part.inner[1], given, own).toTensor();
      return at::_sparse_coo_tensor_unsafe(indices, values, part.size, values.options().layout(c10::kSparse))
          ._coalesced_(part.coalesced);
    }
    c10::List<at::Tensor> list;
    list.reserve(part.numbers.size());
    for (size_t i : part.numbers) list.push_back(tensor(i));
    return list;
  }
};

}  // namespace enablekit
