// The weights of one model on a device.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "patchbay/abi/model.h"
#include "patchbay/sizes.hpp"
#include "runner/attention_sinks.hpp"
#include "runner/model_work.hpp"

namespace patchbay::runner {

struct LoadedWeights {
    std::vector<pb_weight*> by_spec; // aliases repeat
    std::vector<pb_weight*> owned;   // released once each
    AttentionSinks sinks;            // likewise
    uint64_t bytes = 0;
    ModelWork work;
    std::string form;                // that most of the linears have: "int4 g32", "int8 rows"
    pb_model_facts facts = sized<pb_model_facts>(); // of a set that is not in use: its model's
};

}  // namespace patchbay::runner
