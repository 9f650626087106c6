#include "service/engine_replacement.hpp"
#include "engine/trace/step_files.hpp"

#include <utility>

namespace patchbay::service {

void EngineReplacement::begin(std::shared_ptr<engine::Engine> next, First first) {
    next_ = std::move(next);
    first_ = std::move(first);
}

EngineReplacement::First EngineReplacement::switch_over() {
    replaced_ = std::exchange(current_, next_);
    current_->files().go_on_with(replaced_->files());
    current_->end_swaps_of(*replaced_);
    return std::exchange(first_, nullptr);
}

void EngineReplacement::cancel() {
    next_.reset();
    first_ = nullptr;
}

std::shared_ptr<engine::Engine> EngineReplacement::release_replaced() { return std::exchange(replaced_, nullptr); }

}  // namespace patchbay::service
