// What a caller puts in the place of what Engine::create() makes, on a device that computes nothing: another executor,
// and what goes with it.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "engine/loop/step_observer.hpp"
#include "engine/request/request.hpp"
#include "execution/local_executor.hpp"
#include "host/registry.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {

struct Substitutes {
    // Of the runner, the ranks that it was made with (null: it is alone), and the tokens that end an output.
    std::function<std::unique_ptr<execution::LocalExecutor>(std::unique_ptr<runner::ModelRunner>,
                                                            std::unique_ptr<runner::Ranks>, std::vector<TokenId>)>
        executor;
    std::shared_ptr<const text::Tokenizer> tokenizer; // null: the configuration's
    host::Proposer proposer;                          // empty: the configuration's
    std::unique_ptr<StepObserver> observer;           // null: there is none
};

}  // namespace patchbay::engine
