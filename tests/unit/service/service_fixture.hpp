// Engines, requests and readers for tests of what serves requests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/stream.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::service::testing {

std::unique_ptr<engine::Engine> make_engine(const config::EngineConfig&, Clock&);
config::EngineConfig smaller_model(); // than tiny_model(): it gives other tokens
engine::Request request(uint64_t seed, uint32_t max_tokens);

struct Read {
    std::vector<engine::TokenId> tokens;
    std::vector<engine::FinishReason> endings;
    size_t deltas = 0;
};
Read read_all(Stream&); // waits for its end
std::vector<engine::TokenId> expected_tokens(uint64_t seed, uint32_t max_tokens); // of request(), by an engine alone

}  // namespace patchbay::service::testing
