// What went wrong in a forward pass where the model calls back, which has no way to say so there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay::runner {

struct PassFaults {
    bool out_of_memory = false;
    std::string layer; // what the model asked of a layer: "attends in layer 7 of 4"
    std::string cost;  // attention did not say what it costs

    bool any_of_model() const { return out_of_memory || !layer.empty(); } // it goes on, and nothing is done for it
    // Of the whole pass, the cause before what follows from it. done: the model's forward; ended: the device's step.
    Result<> check(std::string_view model, uint32_t tokens, const Result<>& done, const Result<>& ended) const {
        if (out_of_memory)
            return fail(StatusCode::kExhausted, "the device has no memory left for the step's workspace of " +
                                                    std::to_string(tokens) + " tokens");
        if (!layer.empty()) return fail("model '" + std::string(model) + "' " + layer);
        PB_CHECK(done);
        PB_CHECK(ended);
        return cost.empty() ? Result<>() : fail(cost);
    }
};

}  // namespace patchbay::runner
