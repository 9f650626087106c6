// Tokens come from a script, where a scenario says what a model would.
#pragma once
#include "execution/script.hpp"
#include "execution/simulated_executor.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::execution {

class ScriptedExecutor final : public SimulatedExecutor {
  public:
    ScriptedExecutor(std::unique_ptr<runner::ModelRunner>, std::unique_ptr<runner::Ranks>, std::vector<int32_t> eos,
                     Script&, const text::Tokenizer* vocabulary);
    TokenSource tokens() const override { return source_; }

  private:
    void answer(std::span<const RowPath>, std::span<int32_t> tokens) override;

    Script& script_;
    TokenSource source_;
};

}  // namespace patchbay::execution
