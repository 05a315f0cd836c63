// The functions that torch.orion needs from C++.

#include "orion.h"

#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.attr("device_count") = int64_t{orion::kDevices};
  m.def("default_generator", [](int64_t index) {
    const auto& generator = orion::default_generator(static_cast<c10::DeviceIndex>(index));
    return py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator));
  });
}
