// Device memory: host pages between two guard pages, and pinned host memory.

#include "orion.h"

#include <ATen/core/CachingHostAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace orion {
namespace {

using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kAlignment = 64;
constexpr size_t kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
constexpr int kFresh = 0xFF;  // a NaN in each floating-point type, so that a read of unwritten memory shows
constexpr unsigned char kTail = 0xC5;

size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

size_t page_size() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// The bytes of each device; ORION_MEMORY in the environment replaces the 16 GiB.
size_t capacity() {
  static const size_t bytes = [] {
    const char* text = std::getenv("ORION_MEMORY");
    return text ? std::strtoull(text, nullptr, 10) : size_t{16} << 30;
  }();
  return bytes;
}

// One buffer. The pages [map + page, map + mapped - page) are accessible, and the buffer abuts their end.
struct Buffer {
  char* map;
  size_t mapped;
  size_t size;
  c10::DeviceIndex device;

  size_t padded() const {
    return round_up(size, kAlignment);
  }
  char* data() const {
    return map + mapped - page_size() - padded();
  }
  size_t accessible() const {
    return mapped - 2 * page_size();
  }
};

// Return the buffer for this size, or nothing if the host has no more memory.
std::optional<Buffer> mapped_buffer(size_t size, c10::DeviceIndex device) {
  const size_t inner = round_up(size, page_size());
  const size_t mapped = inner + 2 * page_size();
  void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return std::nullopt;
  Buffer buffer{static_cast<char*>(map), mapped, size, device};
  if (mprotect(buffer.map + page_size(), inner, PROT_READ | PROT_WRITE)) {
    munmap(map, mapped);
    return std::nullopt;
  }
  std::memset(buffer.data(), kFresh, size);
  std::memset(buffer.data() + size, kTail, buffer.padded() - size);
  return buffer;
}

// End the process if bytes between the end of the buffer and its guard page changed.
void check_tail(const Buffer& buffer) {
  const char* start = buffer.data() + buffer.size;
  const char* end = buffer.data() + buffer.padded();
  const auto unchanged = [](char byte) { return static_cast<unsigned char>(byte) == kTail; };
  if (std::all_of(start, end, unchanged)) return;
  std::fprintf(stderr, "orion: a write went past the end of a buffer of %zu bytes\n", buffer.size);
  std::abort();
}

class Buffers {
 public:
  void* add(size_t size) {
    const c10::DeviceIndex device = current_device();
    std::lock_guard<std::mutex> lock(mutex_);
    DeviceStats& stats = stats_[device];
    const auto used = static_cast<size_t>(stats.allocated_bytes[kAggregate].current);
    auto buffer = used + size <= capacity() ? mapped_buffer(size, device) : std::nullopt;
    if (!buffer) {
      ++stats.num_ooms;
      TORCH_CHECK_WITH(
          OutOfMemoryError, false, "orion:", int(device), " has no memory for ", size, " bytes; ", used,
          " of ", capacity(), " bytes are allocated");
    }
    count(*buffer, &c10::CachingAllocator::Stat::increase);
    buffers_.emplace(buffer->data(), *buffer);
    return buffer->data();
  }

  void remove(void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto position = buffers_.find(static_cast<char*>(data));
    if (position == buffers_.end()) {
      std::fprintf(stderr, "orion: a buffer was freed twice\n");
      std::abort();
    }
    check_tail(position->second);
    count(position->second, &c10::CachingAllocator::Stat::decrease);
    munmap(position->second.map, position->second.mapped);
    buffers_.erase(position);
  }

  std::optional<c10::DeviceIndex> device_of(const char* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto position = buffers_.upper_bound(const_cast<char*>(address));
    if (position == buffers_.begin()) return std::nullopt;
    const Buffer& buffer = (--position)->second;
    return address < buffer.data() + buffer.size ? std::optional(buffer.device) : std::nullopt;
  }

  // Call a function with the statistics of one device.
  template <typename Function>
  auto with_stats(c10::DeviceIndex device, Function function) {
    const c10::DeviceIndex index = checked_index(device);
    std::lock_guard<std::mutex> lock(mutex_);
    return function(stats_[index]);
  }

 private:
  void count(const Buffer& buffer, void (c10::CachingAllocator::Stat::*change)(size_t)) {
    DeviceStats& stats = stats_[buffer.device];
    (stats.allocation[kAggregate].*change)(1);
    (stats.active[kAggregate].*change)(1);
    (stats.segment[kAggregate].*change)(1);
    (stats.allocated_bytes[kAggregate].*change)(buffer.padded());
    (stats.active_bytes[kAggregate].*change)(buffer.padded());
    (stats.requested_bytes[kAggregate].*change)(buffer.size);
    (stats.reserved_bytes[kAggregate].*change)(buffer.accessible());
  }

  std::mutex mutex_;
  std::map<char*, Buffer> buffers_;
  std::array<DeviceStats, kDevices> stats_;
};

// Never destroyed, because tensors may outlive static objects.
Buffers& buffers() {
  static auto* instance = new Buffers();
  return *instance;
}

void free_buffer(void* data) {
  if (data) buffers().remove(data);
}

// The fields that hold four counters.
template <typename Function>
void for_each_stat(DeviceStats& stats, Function function) {
  for (auto* array :
       {&stats.allocation, &stats.active, &stats.segment, &stats.allocated_bytes, &stats.active_bytes,
        &stats.requested_bytes, &stats.reserved_bytes}) {
    for (auto& stat : *array) function(stat);
  }
}

class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::Device device(kOrion, current_device());
    void* data = size ? buffers().add(size) : nullptr;
    return {data, data, &free_buffer, device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_buffer;
  }
  void copy_data(void* target, const void* source, size_t count) const override {
    default_copy_data(target, source, count);
  }
  bool initialized() override {
    return true;
  }
  // Nothing is cached: a freed buffer is unmapped at once.
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    TORCH_CHECK(stream.device() == data.device(), "a buffer on ", data.device(), " cannot wait for ", stream);
  }
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return buffers().with_stats(device, [](DeviceStats& stats) { return stats; });
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    buffers().with_stats(device, [](DeviceStats& stats) {
      for_each_stat(stats, [](auto& stat) { stat.reset_accumulated(); });
      stats.num_ooms = 0;
    });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    buffers().with_stats(device, [](DeviceStats& stats) {
      for_each_stat(stats, [](auto& stat) { stat.reset_peak(); });
    });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto used = static_cast<size_t>(getDeviceStats(device).allocated_bytes[kAggregate].current);
    return {capacity() - std::min(used, capacity()), capacity()};
  }
};

// Pinned host memory is ordinary memory whose addresses are remembered.
class Pinned {
 public:
  void* add(size_t size) {
    void* data = std::aligned_alloc(kAlignment, round_up(size, kAlignment));
    TORCH_CHECK(data, "the host has no pinned memory for ", size, " bytes");
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_.emplace(static_cast<char*>(data), size);
    return data;
  }
  void remove(void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    sizes_.erase(static_cast<char*>(data));
    std::free(data);
  }
  bool contains(const char* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto position = sizes_.upper_bound(const_cast<char*>(address));
    return position != sizes_.begin() && (--position, address < position->first + position->second);
  }

 private:
  std::mutex mutex_;
  std::map<char*, size_t> sizes_;
};

Pinned& pinned() {
  static auto* instance = new Pinned();
  return *instance;
}

void free_pinned(void* data) {
  if (data) pinned().remove(data);
}

class PinnedMemory final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* data = size ? pinned().add(size) : nullptr;
    return {data, data, &free_pinned, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }
  void copy_data(void* target, const void* source, size_t count) const override {
    default_copy_data(target, source, count);
  }
  bool record_event(void*, void*, c10::Stream) override {
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    return {};
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

at::HostAllocator& pinned_allocator() {
  static auto* instance = new PinnedMemory();
  return *instance;
}

[[maybe_unused]] const auto allocators_registered = [] {
  c10::SetAllocator(kOrion, &device_memory());
  at::setHostAllocator(kOrion, &pinned_allocator());
  return true;
}();

}  // namespace

c10::DeviceAllocator& device_memory() {
  static auto* instance = new DeviceMemory();
  return *instance;
}

c10::Allocator& pinned_memory() {
  return pinned_allocator();
}

std::optional<c10::DeviceIndex> device_of_address(const void* address) {
  return buffers().device_of(static_cast<const char*>(address));
}

bool is_pinned_address(const void* address) {
  return pinned().contains(static_cast<const char*>(address));
}

}  // namespace orion
