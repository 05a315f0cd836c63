// Call keys, as traces/call_keys.py defines them. Two calls have equal words exactly if their keys are equal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "tensor_fields.h"

namespace enablekit {

// Tag word before each value; it identifies the type and length of the words that follow.
enum Kind : int64_t { kInt, kNone, kBool, kFloat, kComplex, kText, kList, kName, kDevice, kObject, kTensor, kUndefined, kSame };

struct CallKey {
  std::vector<int64_t> words;
  std::vector<const at::Tensor*> tensors;  // in argument order
  std::vector<double> floats;              // in argument order; their words come last (`add_floats`, `add_buckets`)

  void clear() {
    words.clear();
    tensors.clear();
    floats.clear();
  }

  void add(Kind kind, int64_t value) {
    words.push_back(kind);
    words.push_back(value);
  }

  void add_float(double value) {
    words.push_back(kFloat);
    floats.push_back(value);
  }

  void add_complex(double real, double imaginary) {
    add(kComplex, bits(real));
    words.push_back(bits(imaginary));
  }

  void add_text(Kind kind, const char* text, size_t size) {
    add(kind, static_cast<int64_t>(size));
    const size_t begin = words.size();
    words.resize(begin + (size + 7) / 8);
    std::memcpy(words.data() + begin, text, size);
  }

  void add_device(const c10::Device& device) {
    add(kDevice, device.index() * 256 + static_cast<int64_t>(device.type()));
  }

  void add_tensor(const at::Tensor& t) {
    tensors.push_back(&t);
    add(kTensor, t.dim());
    put_fields(words, t);
  }

  // Adds the pairs of tensors that are the same object. Pairwise comparison for up to 8 tensors avoids an allocation.
  void add_identities() {
    if (tensors.size() < 2) return;
    if (tensors.size() <= 8) {
      for (size_t i = 1; i < tensors.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (tensors[i]->is_same(*tensors[j])) {
            add(kSame, static_cast<int64_t>(i * 8 + j));
            break;
          }
        }
      }
      return;
    }
    std::unordered_map<const void*, size_t> first;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto found = first.emplace(tensors[i]->unsafeGetTensorImpl(), i);
      if (!found.second) add(kSame, static_cast<int64_t>(i)), words.push_back(static_cast<int64_t>(found.first->second));
    }
  }

  // Adds the exact bits of each float, for serving: a launch takes the values themselves.
  void add_floats() {
    for (double value : floats) words.push_back(bits(value));
  }

  // Adds the bucket of each float, for a recording, as `bucket` in traces/text.py defines it.
  void add_buckets() {
    for (double value : floats) {
      words.push_back(
          std::isnan(value)       ? 'n'
              : std::isinf(value) ? 'i'
              : value == 0        ? '0'
              : value == 1        ? '1'
              : value > 0         ? '+'
                                  : '-');
    }
  }

 private:
  static int64_t bits(double value) {
    int64_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    return word;
  }
};

}  // namespace enablekit
