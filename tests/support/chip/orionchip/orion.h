// Functions that the parts of the orion device share.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>

#include <optional>

namespace orion {

constexpr c10::DeviceType kOrion = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;

// Return the current device of this thread.
c10::DeviceIndex current_device();

// Make a device current for this thread and return the previous one.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// Return the index, or the current device for -1. Raise an error if there is no such device.
c10::DeviceIndex checked_index(c10::DeviceIndex index);

// Return the device whose buffer contains this address.
std::optional<c10::DeviceIndex> device_of_address(const void* address);

// Return True if a pinned buffer contains this address.
bool is_pinned_address(const void* address);

// Return the allocator of device memory.
c10::DeviceAllocator& device_memory();

// Return the allocator of pinned host memory.
c10::Allocator& pinned_memory();

// Return the default generator of a device.
const at::Generator& default_generator(c10::DeviceIndex index);

// Return a new generator with the default seed.
at::Generator new_generator(c10::DeviceIndex index);

}  // namespace orion
