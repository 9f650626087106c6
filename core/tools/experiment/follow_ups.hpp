// The requests of a run that follow another one: when they are due, and what of the other one they continue.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "experiment/workload.hpp"

namespace patchbay::experiment {

class FollowUps {
  public:
    explicit FollowUps(const Requests&);

    bool has_next(uint32_t request) const { return next_[request] != kNone; } // one follows it
    void keep_prompt(uint32_t request, const std::vector<text::TokenId>&);    // until the one that follows is made
    void finished(uint32_t request);
    // Those that became due since the last call.
    std::vector<uint32_t> take_due();
    // One that is due, with its prompt after that of the one before it and this output, if it continues it.
    PlannedRequest make(uint32_t request, uint32_t before, const std::vector<text::TokenId>& output);
    void drop_rest() { dropped_ = true; } // none is due any more

  private:
    static constexpr uint32_t kNone = ~uint32_t{0};

    const Requests& planned_;
    std::vector<uint32_t> next_, due_; // next_: by request, the one that follows it
    std::unordered_map<uint32_t, std::vector<text::TokenId>> prompts_;
    bool dropped_ = false;
};

}  // namespace patchbay::experiment
