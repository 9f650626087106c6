#include "engine/loop/step_recovery.hpp"

#include "engine/loop/passes.hpp"
#include "engine/speculation/branches.hpp"
#include "engine/swap/swaps.hpp"

namespace patchbay::engine {

Result<> StepRecovery::or_recovered(const Result<>& done) {
    if (done || !swaps_.can_recover()) return done;
    branches_.drop();
    passes_.give_up();
    swaps_.recover(done.failure());
    recovered_ = true;
    return {};
}

void StepRecovery::end_all(const Failure& of_step) {
    branches_.drop();
    passes_.cancel();
    lifecycle_.fail_all(of_step);
}

}  // namespace patchbay::engine
