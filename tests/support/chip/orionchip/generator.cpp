// Philox generators: a seed, and an offset that kernels advance. Their state is 16 bytes: seed, then offset.

#include "orion.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>
#include <vector>

namespace orion {
namespace {

class Philox final : public c10::GeneratorImpl {
 public:
  explicit Philox(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kOrion, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  static c10::DeviceType device_type() {
    return kOrion;
  }
  void set_current_seed(uint64_t seed) override {
    state_ = {seed, 0};
  }
  uint64_t current_seed() const override {
    return state_[0];
  }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return state_[0];
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset % 4 == 0, "a Philox offset is a multiple of 4, not ", offset);
    state_[1] = offset;
  }
  uint64_t get_offset() const override {
    return state_[1];
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const at::TensorBase state = at::detail::empty_cpu({sizeof(state_)}, at::kByte);
    std::memcpy(state.mutable_data_ptr(), state_.data(), sizeof(state_));
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    TORCH_CHECK(state.numel() == sizeof(state_), "the state of an orion generator has 16 bytes, not ", state.numel());
    std::memcpy(state_.data(), state.data(), sizeof(state_));
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::intrusive_ptr<c10::GeneratorImpl>::reclaim(clone_impl());
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override {
    state_ = static_cast<const Philox&>(*state).state_;
  }

 private:
  Philox* clone_impl() const override {
    auto* copy = new Philox(device().index());
    copy->state_ = state_;
    return copy;
  }

  std::array<uint64_t, 2> state_{c10::default_rng_seed_val, 0};
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  static const auto* generators = [] {
    auto* made = new std::vector<at::Generator>();
    for (c10::DeviceIndex i = 0; i < kDevices; ++i) made->push_back(new_generator(i));
    return made;
  }();
  return (*generators)[checked_index(index)];
}

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<Philox>(checked_index(index));
}

}  // namespace orion
