// The functions that torch.orion needs from C++.

#include "orion.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/Generator.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.attr("device_count") = int64_t{orion::kDevices};
  m.def("default_generator", [](int64_t index) {
    const auto& generator = orion::default_generator(static_cast<c10::DeviceIndex>(index));
    return pybind11::reinterpret_steal<pybind11::object>(THPGenerator_Wrap(generator));
  });
}
