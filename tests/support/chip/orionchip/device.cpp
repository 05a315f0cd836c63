// Devices, streams and events. All work is synchronous, so a stream is empty and a recorded event is complete.

#include "orion.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

namespace orion {
namespace {

thread_local c10::DeviceIndex device_of_thread = 0;
thread_local std::array<c10::StreamId, kDevices> stream_of_thread{};
std::atomic<c10::StreamId> last_stream{0};  // stream 0 is each device's default

c10::Stream stream_with(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kOrion, device), id);
}

struct Event {
  bool timed;
  std::chrono::steady_clock::time_point time;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kOrion;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kOrion, "expected a device of type orion, not ", device);
    return {kOrion, exchange_device(device.index())};
  }
  c10::Device getDevice() const override {
    return {kOrion, device_of_thread};
  }
  void setDevice(c10::Device device) const override {
    exchangeDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < kDevices) device_of_thread = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return kDevices;
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {};
  }

  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = checked_index(device.index());
    return stream_with(index, stream_of_thread[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_with(checked_index(device.index()), 0);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream_with(checked_index(device.index()), ++last_stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream previous = getStream(stream.device());
    stream_of_thread[checked_index(stream.device_index())] = stream.id();
    return previous;
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    checked_index(index);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_memory().recordStream(data, stream);
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device, const c10::EventFlag flag)
      const override {
    TORCH_CHECK(
        device == -1 || device == stream.device_index(), "an event on orion:", int(device), " cannot record ", stream);
    if (!*event) *event = new Event{flag == c10::EventFlag::BACKEND_DEFAULT, {}};
    static_cast<Event*>(*event)->time = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "both events must be recorded before their elapsed time is read");
    const auto* start = static_cast<Event*>(first);
    const auto* end = static_cast<Event*>(second);
    TORCH_CHECK(start->timed && end->timed, "both events must have enable_timing=True");
    return std::chrono::duration<double, std::milli>(end->time - start->time).count();
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index >= 0 && index < kDevices;
  }
  c10::DeviceIndex deviceCount() const override {
    return kDevices;
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return device_of_thread;
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    exchange_device(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index);
  }
  at::Device getDeviceFromPtr(void* data) const override {
    const auto device = device_of_address(data);
    TORCH_CHECK(device, "the address ", data, " is not in a buffer on orion");
    return {kOrion, *device};
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned_address(data);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return &pinned_memory();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = device_memory().allocate(size);
    if (const size_t kept = std::min(size, storage.nbytes())) std::memcpy(data.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(size);
  }
};

[[maybe_unused]] const c10::impl::DeviceGuardImplRegistrar guard(kOrion, new Guard());
[[maybe_unused]] const auto hooks_registered = (at::RegisterPrivateUse1HooksInterface(new Hooks()), true);

}  // namespace

c10::DeviceIndex current_device() {
  return device_of_thread;
}

c10::DeviceIndex checked_index(c10::DeviceIndex index) {
  if (index == -1) return device_of_thread;
  TORCH_CHECK(index >= 0 && index < kDevices, "orion has ", int(kDevices), " devices, and none is orion:", int(index));
  return index;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = device_of_thread;
  device_of_thread = checked_index(index);
  return previous;
}

}  // namespace orion
