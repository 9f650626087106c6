// What a model says of itself, once it has read its configuration.
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "host/component.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::runner {

bool is_head(const host::Component& model); // of another model: EAGLE, Medusa

struct ConfigReader { // what else a model learns with its configuration
    uint32_t rank = 0, size = 1;
    uint32_t max_length = 0; // tokens that sequences may reach; 0: not said
};
// Has the model read its configuration, as rank `rank` of `size`.
Result<pb_model_facts> read_facts(const host::Component& model, const weights::FlatConfig&, const ConfigReader& = {});

}  // namespace patchbay::runner
