#include "step_time.hpp"

namespace patchbay {

void StepTime::restart() {
    charged_ns_ = 0;
    recorded_.reset();
}

void StepTime::charge(const Work& work) noexcept {
    const double ns = hardware_.ns_of(work);
    charged_ns_ += hardware_.launch_ns;
    if (recorded_) recorded_->ns += ns, recorded_->count += 1;
    else charged_ns_ += ns;
}

void StepTime::charge(const pb_cost& cost) noexcept { charged_ns_ += hardware_.ns_of(cost); }

void StepTime::replay(const RecordedOps& ops) noexcept {
    charged_ns_ += hardware_.graph_replay_ns + ops.ns + static_cast<double>(ops.count) * hardware_.graph_node_ns;
}

RecordedOps StepTime::stop_recording() { return *std::exchange(recorded_, {}); }

}  // namespace patchbay
