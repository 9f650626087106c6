#include "parallel/rank_failure.hpp"

#include <algorithm>
#include <cassert>

namespace patchbay::parallel {

void RankFailure::suspect(Sign sign, uint64_t decide_ns, Failure why) {
    const bool passes = sign == Sign::kReported;
    if (!cause_) cause_ = {sign, decide_ns, std::move(why), passes};
    else if (sign > cause_->sign) cause_ = {sign, std::min(decide_ns, cause_->decide_ns), std::move(why), passes};
}

bool RankFailure::ended(bool exited, uint64_t now) {
    if (cause_ && cause_->sign >= Sign::kEnded) return false;
    if (!cause_ || cause_->sign != Sign::kReported || !exited) return true;
    cause_->decide_ns = now;
    cause_->passes = false;
    return false;
}

const RankFailure::Cause* RankFailure::due(uint64_t now) const {
    return cause_ && now >= cause_->decide_ns ? &*cause_ : nullptr;
}

void RankFailure::set(Failure why, Lasts lasts, bool in_session) {
    assert(changes(lasts));
    if (!exists() || !in_session) why_ = std::move(why);
    lasts_ = lasts;
}

void RankFailure::end_session() {
    why_.reset();
    if (cause_ && cause_->passes) cause_.reset();
}

}  // namespace patchbay::parallel
