// The ATen overloads that a device provides itself: memory, views, copies and item(). There is no CPU fallback.

#include "orion.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace orion {
namespace {

using at::Tensor;
using std::optional;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Return the device for a new tensor, after checks of the options that it cannot have.
c10::Device checked_device(optional<c10::Layout> layout, optional<c10::Device> device, optional<bool> pin_memory) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided, "orion has strided tensors only");
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "only tensors on the CPU can be pinned");
  return {kOrion, checked_index(c10::device_or_default(device).index())};
}

Tensor empty(
    c10::IntArrayRef size,
    optional<c10::ScalarType> dtype,
    optional<c10::Layout> layout,
    optional<c10::Device> device,
    optional<bool> pin_memory,
    optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(checked_device(layout, device, pin_memory));
  return at::detail::empty_generic(size, &device_memory(), kKeys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    optional<c10::ScalarType> dtype,
    optional<c10::Layout> layout,
    optional<c10::Device> device,
    optional<bool> pin_memory) {
  const c10::DeviceGuard guard(checked_device(layout, device, pin_memory));
  return at::detail::empty_strided_generic(size, stride, &device_memory(), kKeys, c10::dtype_or_default(dtype));
}

const Tensor& resize_(const Tensor& self, c10::IntArrayRef size, optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());
  return at::native::resize_(self, size, format);
}

// Return a CPU tensor over the memory of a tensor on orion or the CPU.
Tensor on_host(const Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  TORCH_CHECK(tensor.device().type() == kOrion, "orion cannot copy to or from ", tensor.device());
  void* data = tensor.numel() ? const_cast<void*>(tensor.const_data_ptr()) : nullptr;
  const auto options = c10::TensorOptions().dtype(tensor.scalar_type());
  Tensor host = at::from_blob(data, tensor.sizes(), tensor.strides(), options);
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool non_blocking) {
  at::assert_no_internal_overlap(target);
  at::assert_no_partial_overlap(target, self);
  Tensor host = on_host(target);
  at::native::copy_(host, on_host(self), non_blocking);
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

c10::Scalar local_scalar(const Tensor& self) {
  return at::native::_local_scalar_dense_cpu(on_host(self));
}

Tensor& set_storage(
    Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  const c10::DeviceGuard guard(self.device());
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

void record_stream(Tensor& self, c10::Stream stream) {
  device_memory().recordStream(self.storage().data_ptr(), stream);
}

// Raise an error for every overload without a kernel. PyTorch decomposes some overloads first, so the message names the
// one that reaches the device: add.out for add.Tensor, zero_ for zeros, native_batch_norm for native_layer_norm.
void no_kernel(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name(), ": orion has no kernel for it");
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  m.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("record_stream", TORCH_FN(record_stream));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&no_kernel>());
}

// A copy handles lazy conjugation and negation. Without these, PyTorch would copy into a temporary target.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace orion
