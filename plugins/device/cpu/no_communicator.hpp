// Replaces communicator.cpp in builds without Gloo: one rank only.
#pragma once
#include "communicator.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {

struct Communicator::Links {};

Communicator::Communicator(const pb_group& group) : rank_(group.rank), size_(group.size) {
    throw Error(PB_UNSUPPORTED, "this plugin was built without Gloo, so it cannot be one of " +
                                    std::to_string(group.size) + " ranks (install libgloo-dev and build again)");
}
Communicator::~Communicator() = default;
void Communicator::connect(const pb_group&) {}
void Communicator::all_reduce(float*, int64_t) {}
void Communicator::all_gather(float*, const float*, int64_t, int64_t) {}
void Communicator::abort() noexcept {}

}  // namespace patchbay
