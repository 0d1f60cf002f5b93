// An operator may call others, so begin and end of a call change a depth; what
// our code calls has depth 0. Only this file reads what RecordFunction holds:
// see src/CMakeLists.txt.
#include "operator_hook.hpp"

#include <c10/util/Exception.h>

#include <memory>

namespace chexnet {
namespace {

// The hooks are plain functions, which get no argument of ours.
thread_local OperatorListener* current = nullptr;
thread_local int64_t depth = 0;

std::unique_ptr<at::ObserverContext> call_began(
    const at::RecordFunction& call) {
  const bool ours = depth++ == 0;
  current->began(call, call.inputs(), ours);
  return nullptr;
}

void call_ended(const at::RecordFunction& call, at::ObserverContext*) {
  const bool ours = --depth == 0;
  const auto& outputs = call.outputs();
  current->ended(call, OperatorValues(outputs.data(), outputs.size()), ours);
}

}  // namespace

void OperatorListener::ended(const at::RecordFunction&, OperatorValues, bool) {}

OperatorHook::OperatorHook(OperatorListener& listener) {
  TORCH_INTERNAL_ASSERT(current == nullptr);
  current = &listener;
  depth = 0;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(call_began, call_ended)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

OperatorHook::~OperatorHook() {
  at::removeCallback(handle_);
  current = nullptr;
}

}  // namespace chexnet
