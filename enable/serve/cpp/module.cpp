// Launches of known calls without Python: what native.py loads.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <array>

#include "registrations.h"

namespace enablekit {
namespace {

Launch make_launch(
    uint64_t function,
    const std::array<unsigned, 3>& grid,
    unsigned threads,
    unsigned shared,
    size_t scratch,
    const std::vector<std::string>& types,
    const py::sequence& values,
    const std::vector<std::tuple<uint32_t, int32_t, int64_t>>& patches) {
  Launch launch{reinterpret_cast<void*>(function), {grid[0], grid[1], grid[2]}, threads, shared, scratch, {}, {}};
  for (size_t i = 0; i < types.size(); ++i) launch.values.push_back(packed(types[i], values[i]));
  launch.values.insert(launch.values.end(), 2, 0);  // Triton's scratch memory, and a profiler's, of which there is none
  for (const auto& [parameter, source, offset] : patches) {
    const auto& type = types[parameter];
    TORCH_CHECK(source >= 0 || type == "fp32" || type == "f32" || type == "fp64" || type == "i64", "no float is a ", type);
    launch.patches.push_back({parameter, source, offset, type == "fp64"});
  }
  return launch;
}

Part make_part(const py::tuple& told) {
  const auto kind = told[0].cast<std::string>();
  Part part{Part::kValue};
  if (kind == "tensor") {
    part.kind = Part::kTensor;
    part.number = told[1].cast<size_t>();
  } else if (kind == "tensors") {
    part.kind = Part::kTensors;
    part.numbers = told[1].cast<std::vector<size_t>>();
  } else if (kind == "view") {
    part.kind = Part::kView;
    part.number = told[1].cast<size_t>();
    part.size = told[2].cast<std::vector<int64_t>>();
    part.stride = told[3].cast<std::vector<int64_t>>();
    part.offset = told[4].cast<int64_t>();
  } else if (kind == "sparse") {
    part.kind = Part::kSparse;
    part.inner = {make_part(told[1].cast<py::tuple>()), make_part(told[2].cast<py::tuple>())};
    part.size = told[3].cast<std::vector<int64_t>>();
    part.coalesced = told[4].cast<bool>();
  } else if (py::isinstance<py::bool_>(told[1])) {
    part.value = told[1].cast<bool>();
  } else if (py::isinstance<py::int_>(told[1])) {
    part.value = told[1].cast<int64_t>();
  } else if (py::isinstance<py::float_>(told[1])) {
    part.value = told[1].cast<double>();
  } else {
    TORCH_CHECK(told[1].is_none(), "no answer has a ", Py_TYPE(py::object(told[1]).ptr())->tp_name);
    part.value = kind == "undefined" ? IValue(at::Tensor()) : IValue();
  }
  return part;
}

std::shared_ptr<Program> make_program(
    std::vector<bool> aligned,
    const py::sequence& made,
    const std::vector<Launch>& launches,
    const py::sequence& answer,
    const std::vector<py::list>& hooks,
    const py::object& fits,
    const std::vector<std::tuple<size_t, size_t, int64_t>>& apart,
    const py::object& footprint) {
  const auto program = std::make_shared<Program>();
  program->aligned = std::move(aligned);
  if (!footprint.is_none()) {
    const auto parts = footprint.cast<py::tuple>();
    program->footprint = Footprint{
        parts[0].cast<std::vector<uint64_t>>(),
        parts[1].cast<std::vector<bool>>(),
        parts[2].cast<std::vector<size_t>>(),
        parts[3].cast<bool>()};
  }
  program->launches = launches;
  program->apart = apart;
  if (!fits.is_none()) {
    const auto told = fits.cast<py::tuple>();
    program->fits.emplace();
    program->fits->alike = told[0].cast<std::vector<std::vector<size_t>>>();
    program->fits->fixed = told[1].cast<std::vector<std::pair<size_t, double>>>();
    program->fits->seed = told[3].cast<std::optional<int64_t>>();
    for (const auto& one : told[2].cast<std::vector<std::tuple<uint32_t, bool, std::string, double, bool>>>()) {
      const auto& [position, absolute, name, other, outcome] = one;
      program->fits->asked.push_back({position, absolute, name, other, outcome});
    }
  }
  for (const auto& hook : hooks) program->hooks.push_back(hook.inc_ref().ptr());
  program->beginning.resize(std::max<size_t>(launches.size(), 1));
  program->ending.resize(launches.size());
  for (const auto& told : made) {
    const auto of = told.cast<py::tuple>();
    TORCH_CHECK(THPDtype_Check(of[2].ptr()), "no dtype");
    const auto dtype = reinterpret_cast<THPDtype*>(of[2].ptr())->scalar_type;
    const auto from = of[3].cast<size_t>(), until = of[4].cast<size_t>();
    program->made.push_back({of[0].cast<std::vector<int64_t>>(), of[1].cast<std::vector<int64_t>>(), dtype});
    program->beginning.at(from).push_back(program->made.size() - 1);
    if (until < launches.size()) program->ending[until].push_back(program->made.size() - 1);
  }
  for (const auto& told : answer) program->answer.push_back(make_part(told.cast<py::tuple>()));
  return program;
}

// A launch that has all its pointers.
void run_launch(const Launch& launch, uint64_t stream, c10::DeviceIndex device) {
  TORCH_CHECK(launch.patches.empty(), "this launch lacks pointers");
  py::gil_scoped_release released;
  launch.run(nullptr, {}, std::nullopt, reinterpret_cast<void*>(stream), c10::Device(c10::kCUDA, device));
}

// The answer of a program that belongs to no overload; None, with nothing done, where the tensors do not fit.
py::object run_program(const Program& program, const std::vector<at::Tensor>& tensors) {
  Given given;
  for (const auto& t : tensors) given.push_back(&t);
  std::vector<IValue> results;
  bool fits = !tensors.empty();
  if (fits) {
    py::gil_scoped_release released;
    fits = program.run(given, {}, tensors[0].device(), results);
  }
  if (!fits) return py::none();
  py::list told;
  for (const auto& result : results) told.append(result.isTensor() ? py::cast(result.toTensor()) : py::none());
  return std::move(told);
}

}  // namespace
}  // namespace enablekit

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace enablekit;
  py::class_<Launch>(m, "Launch").def(py::init(&make_launch)).def("run", &run_launch);
  py::class_<Program, std::shared_ptr<Program>>(m, "Program")
      .def(py::init(&make_program))
      .def("calls", [](Program& program) { return program.calls.exchange(0); })
      .def("run", &run_program);
  py::class_<Installed>(m, "Installed").def("undo", &Installed::undo);
  m.def("install", &install);
  m.def("wanted", &wanted);
  m.def("deposit", &deposit);
}
