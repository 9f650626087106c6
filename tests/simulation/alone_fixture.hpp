// An engine with room for everything that one request needs. With beam search or best_of, a request whose outputs are
// chosen among others must have the same result here as in a crowded engine.
#pragma once
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "execution/script.hpp"
#include "host/registry.hpp"

namespace patchbay::engine::testing {

// What a synthetic token of such a request becomes: now and then the end. It depends on seed and position only.
inline TokenId chosen_token(TokenId synthetic, TokenId end) { return synthetic % 40 == 0 ? end : synthetic; }

class Alone final : execution::Script {
  public:
    static Result<std::unique_ptr<Alone>> create(config::EngineConfig like, const host::Registry&, TokenId end);
    Result<std::vector<RequestOutput>> run(Request); // by index

  private:
    explicit Alone(TokenId end) : end_(end) {}
    void planned(std::span<const pb_plan_item>) override {}
    void sampled(std::span<const execution::ScriptedRows> all) override {
        for (const execution::ScriptedRows& rows : all)
            for (TokenId& t : rows.tokens) t = chosen_token(t, end_);
    }

    const TokenId end_;
    VirtualClock clock_;
    std::unique_ptr<Engine> engine_; // goes first
};

}  // namespace patchbay::engine::testing
