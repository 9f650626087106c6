#include "unit/service/service_fixture.hpp"

#include <stdexcept>
#include <utility>

namespace patchbay::service::testing {

using namespace engine::testing;

std::unique_ptr<engine::Engine> make_engine(const config::EngineConfig& config, Clock& clock) {
    auto made = engine::Engine::create(config, registry(), clock);
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

config::EngineConfig smaller_model() {
    config::EngineConfig c = tiny_model();
    c.model.shape["num_hidden_layers"] = "1";
    return c;
}

engine::Request request(uint64_t seed, uint32_t max_tokens) {
    engine::Request r;
    r.prompt = random_prompt(seed, 12);
    r.sampling = greedy(max_tokens);
    return r;
}

Read read_all(Stream& stream) {
    Read out;
    while (const auto delta = stream.next()) {
        out.tokens.insert(out.tokens.end(), delta->tokens.begin(), delta->tokens.end());
        if (delta->finish != engine::FinishReason::kNone) out.endings.push_back(delta->finish);
        out.deltas += 1;
    }
    return out;
}

std::vector<engine::TokenId> expected_tokens(uint64_t seed, uint32_t max_tokens) {
    Harness h(tiny_model());
    return h.run(h.add(request(seed, max_tokens))).tokens;
}

}  // namespace patchbay::service::testing
