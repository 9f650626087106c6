#include "experiment/follow_ups.hpp"

#include <utility>

namespace patchbay::experiment {

FollowUps::FollowUps(const Requests& planned) : planned_(planned), next_(planned.size(), kNone) {
    for (uint32_t i = 0; i < planned.size(); ++i)
        if (const auto before = planned.follows(i)) next_[*before] = i;
}

void FollowUps::keep_prompt(uint32_t request, const std::vector<text::TokenId>& prompt) {
    if (has_next(request)) prompts_[request] = prompt;
}

void FollowUps::finished(uint32_t request) {
    if (has_next(request)) due_.push_back(next_[request]);
}

std::vector<uint32_t> FollowUps::take_due() {
    if (dropped_) due_.clear();
    return std::exchange(due_, {});
}

PlannedRequest FollowUps::make(uint32_t request, uint32_t before, const std::vector<text::TokenId>& output) {
    PlannedRequest made = planned_.make(request);
    if (made.continues) {
        std::vector<text::TokenId> whole = std::move(prompts_[before]);
        whole.insert(whole.end(), output.begin(), output.end());
        whole.insert(whole.end(), made.prompt.begin(), made.prompt.end());
        made.prompt = std::move(whole);
    }
    prompts_.erase(before);
    return made;
}

}  // namespace patchbay::experiment
