// Which calls are alike: those that differ in nothing but contents, as `shortcuts.looked_at` has it.
#pragma once

#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>

namespace enablekit {

using c10::IValue;
using Given = std::vector<const at::Tensor*>;
using Key = std::vector<int64_t>;

// The device of the tensors of a call that is looked at; all have to be on it.
struct Seen {
  Key& key;
  Given& given;
  std::vector<double>& floats;
  std::deque<at::Tensor>& parts;  // of sparse tensors
  std::optional<c10::Device> device;  // of the tensors
  std::optional<c10::Device> named;   // by an argument

  // Where the call is for a device of this type; without tensors it may be for the current one.
  std::optional<c10::Device> place(c10::DeviceType type) const {
    auto found = device ? device : named ? named : c10::Device(type);
    if (found->type() != type) return std::nullopt;
    if (type != c10::kCPU && !found->has_index()) return c10::impl::getDeviceGuardImpl(type)->getDevice();
    return found;
  }

  bool add(const IValue& value) {
    if (value.isTensor()) return add_tensor(value.toTensor());
    if (value.isInt()) return put(1, value.toInt());
    if (value.isNone()) return put(2, 0);
    if (value.isDouble()) return add_float(value.toDouble());
    if (value.isBool()) return put(4, value.toBool());
    if (value.isList()) {
      const auto items = value.toListRef();
      put(5, static_cast<int64_t>(items.size()));
      for (const auto& item : items) {
        if (!add(item)) return false;
      }
      return true;
    }
    if (value.isDevice()) {
      named = value.toDevice();
      return put(6, named->index() * 256 + static_cast<int64_t>(named->type()));
    }
    if (value.isString()) return add_text(value.toStringRef());
    if (value.isComplexDouble()) {
      const auto number = value.toComplexDouble();
      return put(7, bits(number.real())) && put(7, bits(number.imag()));
    }
    return false;
  }

  // What the floats are, after all else.
  void add_floats() {
    for (double number : floats) put(13, bits(number));
  }

  // Which of the tensors are the same object.
  void add_identities() {
    if (given.size() < 2) return;
    if (given.size() <= 8) {
      for (size_t i = 1; i < given.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (given[i]->is_same(*given[j])) {
            put(8, static_cast<int64_t>(i * 8 + j));
            break;
          }
        }
      }
      return;
    }
    std::unordered_map<const void*, size_t> first;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto found = first.emplace(given[i]->unsafeGetTensorImpl(), i);
      if (!found.second) put(8, static_cast<int64_t>(i)), put(8, static_cast<int64_t>(found.first->second));
    }
  }

 private:
  static int64_t bits(double number) {
    int64_t bits = 0;
    std::memcpy(&bits, &number, 8);
    return bits;
  }

  bool put(int64_t kind, int64_t value) {
    key.push_back(kind);
    key.push_back(value);
    return true;
  }

  bool add_float(double number) {
    floats.push_back(number);
    return put(3, 0);
  }

  bool add_text(const std::string& text) {
    put(9, static_cast<int64_t>(text.size()));
    for (char c : text) key.push_back(c);
    return true;
  }

  bool add_tensor(const at::Tensor& t) {
    if (!t.defined()) return put(10, 0);
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) return add_number(t);
    if (t.layout() == c10::kSparse) return add_sparse(t);
    if (t.layout() != c10::kStrided || t.is_nested() || t.is_conj() || t.is_neg()) return false;
    if (t.key_set().has(c10::DispatchKey::Python) || t._is_zerotensor()) return false;
    if (!device) device = t.device();
    if (*device != t.device()) return false;
    given.push_back(&t);
    key.push_back(11 + 256 * (static_cast<int64_t>(t.scalar_type()) + 256 * t.dim()));
    for (int64_t n : t.sizes()) key.push_back(n);
    for (int64_t n : t.strides()) key.push_back(n);
    return true;
  }

  bool add_sparse(const at::Tensor& t) {
    const auto* sparse = static_cast<at::SparseTensorImpl*>(t.unsafeGetTensorImpl());
    put(14, sparse->coalesced() * 256 + t.dim());
    for (int64_t n : t.sizes()) key.push_back(n);
    for (const auto& part : {sparse->indices(), sparse->values()}) {
      parts.push_back(part);
      if (!add_tensor(parts.back())) return false;
    }
    return true;
  }

  // A number where the schema has a tensor: Python is given the number.
  bool add_number(const at::Tensor& t) {
    if (!t.device().is_cpu() || t.dim()) return false;
    put(12, static_cast<int64_t>(t.scalar_type()));
    if (t.scalar_type() == at::kDouble) return add_float(*t.const_data_ptr<double>());
    if (t.scalar_type() == at::kLong) return put(1, *t.const_data_ptr<int64_t>());
    if (t.scalar_type() == at::kBool) return put(4, *t.const_data_ptr<bool>());
    return false;
  }
};

struct Hash {
  size_t operator()(const Key& key) const {
    uint64_t hash = key.size();
    for (int64_t word : key) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

}  // namespace enablekit
