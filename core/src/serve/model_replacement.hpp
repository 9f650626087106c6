// Puts a model that only a new engine can run into a running server: the engine is made beside the one that runs, and
// takes over when that has finished its requests; new requests wait meanwhile. Used by LiveSwaps.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "config/engine_config.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "serve/model_gate.hpp"
#include "serve/slot_journal.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct NewEngine {
    std::unique_ptr<engine::Engine> engine;
    ServedModel model;
};
using MakeEngine = std::function<Result<NewEngine>(const config::EngineConfig&, const host::Registry&)>;

// The configuration of an engine that runs the model of another folder: tokenizer and model plugin are that one's own.
config::EngineConfig with_model(config::EngineConfig, const std::string& path);

class ModelReplacement {
  public:
    struct Parts { // which outlive it
        service::EngineThread& engine;
        ModelGate& gate;
        SlotJournal& journal;
        MakeEngine make; // empty: there is no way to make one
        std::function<void(engine::Engine&, const ServedModel&)> taken_over; // on the loop's thread
    };
    explicit ModelReplacement(Parts parts) : p_(std::move(parts)) {}

    // Whether only a new engine can run the model, and one can be made.
    bool is_needed(const engine::SwapRequest& r) const { return p_.make && p_.engine.needs_new_engine(r); }
    // draining: called when it is loaded, and waits for the requests that run. How it ended: committed; or refused in
    // the phase load, with the old model going on. The failure: the server was stopped first. [one thread]
    Result<host::SwapRecord> replace(const std::string& path, const host::Registry&,
                                     const std::function<void()>& draining);

  private:
    Result<NewEngine> make(const config::EngineConfig&, const host::Registry&);

    const Parts p_;
    host::Prober prober_;
};

}  // namespace patchbay::serve
