// A functor of each overload stands before the kernel that Python has registered, and does what the program of a call's
// key says. A call that has none goes on to Python, which may deposit one while it answers.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>

#include <deque>
#include <memory>
#include <mutex>

#include "keys.h"
#include "programs.h"

namespace enablekit {

using torch::jit::Stack;

constexpr size_t kMostPrograms = 1 << 16;  // of an overload, after which its table begins anew

struct Frame {  // of a call that Python answers
  std::vector<uint64_t> pointers;  // of its tensors, as they were before
  Floats floats;
  bool known;                      // there is a program under its key, which did not fit
  std::shared_ptr<Program> deposited;
};

inline thread_local Frame* asking = nullptr;  // the innermost call of this thread that Python answers, if it may be given one
inline thread_local int depth = 0;            // of calls that Python answers

struct Inside {
  Frame* before = asking;
  explicit Inside(Frame* frame) {
    asking = frame;
    ++depth;
  }
  ~Inside() {
    asking = before;
    --depth;
  }
};

class Functor final : public c10::OperatorKernel {
 public:
  Functor(c10::SafeKernelFunction python, c10::DeviceType type) : python_(std::move(python)), type_(type) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (depth) {  // what a wrapper calls is not served: it would never end
      Inside inside(nullptr);
      python_.callBoxed(op, keys, stack);
      return;
    }
    thread_local CallKey key;
    thread_local std::deque<at::Tensor> parts;
    thread_local std::vector<IValue> results;
    key.clear();
    parts.clear();
    key.words.push_back(static_cast<int64_t>(c10::get_default_dtype_as_scalartype()));
    CallReader reader{key, parts, std::nullopt, std::nullopt};
    const size_t n = op.schema().arguments().size();
    bool clear = true;
    for (const auto& value : torch::jit::last(*stack, n)) clear = clear && reader.add(value);
    const auto on = clear ? reader.place(type_) : std::nullopt;
    if (!on) {
      Inside inside(nullptr);
      python_.callBoxed(op, keys, stack);
      return;
    }
    key.words.push_back(on->index());
    key.add_identities();
    const size_t length = key.words.size();
    auto program = found(key.words);
    if (program && program->fits && !(*program->fits)(key.floats)) program = nullptr;
    if (!program && !key.floats.empty()) {
      key.add_floats();
      program = found(key.words);
    }
    if (program) {
      results.clear();
      if (program->run(key.tensors, key.floats, *on, results)) {
        torch::jit::drop(*stack, n);
        for (auto& result : results) stack->push_back(std::move(result));
        results.clear();
        return;
      }
    }
    Frame frame{{}, key.floats, program && !(program->fits && program->fits->seed), nullptr};
    for (const auto* t : key.tensors) frame.pointers.push_back(reinterpret_cast<uint64_t>(t->data_ptr()));
    Words own = key.words;  // what Python calls meanwhile is read into the same key
    {
      Inside inside(&frame);
      python_.callBoxed(op, keys, stack);
    }
    if (frame.deposited && frame.deposited->answer.size() == op.schema().returns().size()) {
      if (frame.deposited->fits) own.resize(length);
      keep(own, frame.deposited);
    }
  }

 private:
  std::shared_ptr<Program> found(const Words& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = programs_.find(key);
    return at == programs_.end() ? nullptr : at->second;
  }

  void keep(const Words& key, const std::shared_ptr<Program>& program) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (programs_.size() >= kMostPrograms) programs_.clear();
    programs_[key] = program;
  }

  c10::SafeKernelFunction python_;
  c10::DeviceType type_;
  std::mutex mutex_;
  std::unordered_map<Words, std::shared_ptr<Program>, Hash> programs_;
};

struct Silent : c10::WarningHandler {  // PyTorch warns of every kernel that is put over another
  void process(const c10::Warning&) override {}
};

struct Installed {
  std::optional<c10::RegistrationHandleRAII> handle;

  void undo() {
    handle.reset();
  }
};

// Put a functor before the kernel that an overload has under CUDA, CPU, or either's key of sparse tensors.
inline std::unique_ptr<Installed> install(const std::string& name, const std::string& overload, const std::string& key) {
  Silent silent;
  c10::WarningUtils::WarningHandlerGuard guard(&silent);
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto op = dispatcher.findSchemaOrThrow(name.c_str(), overload.c_str());
  const auto place = c10::parseDispatchKey(key);
  auto functor = std::make_unique<Functor>(
      op.getComputedKernelForDispatchKey(place), c10::dispatchKeyToDeviceType(place));
  auto installed = std::make_unique<Installed>();
  installed->handle.emplace(dispatcher.registerImpl(
      op.operator_name(),
      place,
      c10::KernelFunction::makeFromBoxedFunctor(std::move(functor)),
      std::nullopt,
      nullptr,
      "enablekit's native way to launch"));
  return installed;
}

// Whether the call that Python answers just now lacks a program.
inline bool wanted() {
  return asking && !asking->known && !asking->deposited;
}

// Keep a program for calls like the one that Python answers just now. pointers: of its tensors, in their order, as
// floats are in theirs.
inline void deposit(
    const std::shared_ptr<Program>& program, const std::vector<uint64_t>& pointers, const Floats& floats) {
  if (wanted() && asking->pointers == pointers && asking->floats == floats) asking->deposited = program;
}

}  // namespace enablekit
