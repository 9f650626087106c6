#include "experiment/traces/row_choice.hpp"

namespace patchbay::experiment {

bool RowChoice::takes(int64_t time_ns) {
    if (!first_ns_) first_ns_ = time_ns;
    last_ns_ = time_ns;
    const double since_s = static_cast<double>(time_ns - *first_ns_) * 1e-9;
    if (since_s < from_s_ || (until_s_ > 0 && since_s >= until_s_)) return false;
    return takes_without_time();
}

}  // namespace patchbay::experiment
