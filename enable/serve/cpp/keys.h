// Keys of calls for serving, made of the arguments on the dispatcher's stack, and the device that a call is for.
#pragma once

#include <ATen/SparseTensorImpl.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <deque>
#include <optional>

#include "call_key.h"

namespace enablekit {

using c10::IValue;
using Words = std::vector<int64_t>;

// Reads the arguments of one call. All tensors have to be on one device.
struct CallReader {
  CallKey& key;
  std::deque<at::Tensor>& parts;      // of sparse tensors
  std::optional<c10::Device> device;  // of the tensors
  std::optional<c10::Device> named;   // by an argument

  // The device, if the call is for one of this type; a call without tensors may be for the current one.
  std::optional<c10::Device> place(c10::DeviceType type) const {
    auto found = device ? device : named ? named : c10::Device(type);
    if (found->type() != type) return std::nullopt;
    if (type != c10::kCPU && !found->has_index()) return c10::impl::getDeviceGuardImpl(type)->getDevice();
    return found;
  }

  // False if the value has no key.
  bool add(const IValue& value) {
    if (value.isTensor()) return add_tensor(value.toTensor());
    if (value.isInt()) return key.add(kInt, value.toInt()), true;
    if (value.isNone()) return key.add(kNone, 0), true;
    if (value.isDouble()) return key.add_float(value.toDouble()), true;
    if (value.isBool()) return key.add(kBool, value.toBool()), true;
    if (value.isList()) {
      const auto items = value.toListRef();
      key.add(kList, static_cast<int64_t>(items.size()));
      for (const auto& item : items) {
        if (!add(item)) return false;
      }
      return true;
    }
    if (value.isDevice()) {
      named = value.toDevice();
      return key.add_device(*named), true;
    }
    if (value.isString()) {
      const auto& text = value.toStringRef();
      return key.add_text(kText, text.data(), text.size()), true;
    }
    if (value.isComplexDouble()) {
      const auto number = value.toComplexDouble();
      return key.add_complex(number.real(), number.imag()), true;
    }
    return false;
  }

 private:
  bool add_tensor(const at::Tensor& t) {
    if (!t.defined()) return key.add(kUndefined, 0), true;
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) return add_number(t);
    if (t.layout() == c10::kSparse) return add_sparse(t);
    if (t.layout() != c10::kStrided || t.is_nested() || t.is_conj() || t.is_neg()) return false;
    if (t.key_set().has(c10::DispatchKey::Python) || t._is_zerotensor()) return false;
    if (!device) device = t.device();
    if (*device != t.device()) return false;
    key.add_tensor(t);
    return true;
  }

  bool add_sparse(const at::Tensor& t) {
    const auto* sparse = static_cast<at::SparseTensorImpl*>(t.unsafeGetTensorImpl());
    key.add(kTensor, t.dim());
    put_fields(key.words, t);
    for (const auto& part : {sparse->indices(), sparse->values()}) {
      parts.push_back(part);
      if (!add_tensor(parts.back())) return false;
    }
    return true;
  }

  // A number where the schema has a tensor: Python is given the number.
  bool add_number(const at::Tensor& t) {
    if (!t.device().is_cpu() || t.dim()) return false;
    if (t.scalar_type() == at::kDouble) return key.add_float(*t.const_data_ptr<double>()), true;
    if (t.scalar_type() == at::kLong) return key.add(kInt, *t.const_data_ptr<int64_t>()), true;
    if (t.scalar_type() == at::kBool) return key.add(kBool, *t.const_data_ptr<bool>()), true;
    return false;
  }
};

struct Hash {
  size_t operator()(const Words& words) const {
    uint64_t hash = words.size();
    for (int64_t word : words) {
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

}  // namespace enablekit
