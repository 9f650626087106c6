// The engine: requests in, tokens out, one step at a time. docs/architecture.md shows its parts.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "engine/facts.hpp"
#include "engine/request/request.hpp"
#include "engine/stepping.hpp"
#include "engine/view.hpp"
#include "runner/model_work.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::host {
class MetricSink;
class Registry;
}

namespace patchbay::kv {
class KvCache;
struct BlockTable;
struct CacheEvent;
}

namespace patchbay::parallel {
class World;
}

namespace patchbay::engine {

class EngineControl;
class StepFiles;
class StepObserver;
struct Substitutes;

class Engine final : public SteppingEngine {
  public:
    // Loads plugins, model and tokenizer, sizes the KV cache. The clock must outlive the engine, and so must the world,
    // where the ranks of several come from; without one they are started here, for this engine.
    static Result<std::unique_ptr<Engine>> create(const config::EngineConfig&, const host::Registry&, Clock&,
                                                  host::MetricSink* = nullptr, parallel::World* = nullptr);
    // The same on a device that computes nothing, with what the caller puts in the place of its parts.
    static Result<std::unique_ptr<Engine>> create_with(const config::EngineConfig&, const host::Registry&, Clock&,
                                                       Substitutes);
    ~Engine() override;

    // Refused: empty or too long a prompt (max_model_len), token ids out of range, parameters out of range, a full
    // queue. A refusal touches no other request. [any thread that does not run step at the same time]
    // The sequences of further outputs (n > 1) have the ids that follow.
    Result<RequestId> add_request(Request) override;
    // Compiles structured_outputs ahead of the requests that have them, for their Request::grammar: that takes up
    // to a second, and add_request() may hold up the steps. [any thread, also while another one steps]
    Result<std::shared_ptr<grammar::Grammar>> compile_grammar(const grammar::StructuredOutputs&);
    // Likewise all that takes long of a request: its grammar, and the tokens of the words that it forbids.
    Result<> prepare(Request&);
    // In any state; unknown ids are ignored. By a callback of a step: the request ends with the step, and is handed
    // nothing more of it.
    void abort(RequestId) override;
    bool has_unfinished() const override; // requests, a step in flight, or a swap on its way into its slot
    // That a step is possible; for those who have none to run. The failure: a rank has gone.
    Result<> check() const override;
    // Runs one step, or waits on the clock for the next arrival if nothing can run. Fails only if the engine cannot
    // go on.
    Result<StepReport> step() override;

    EngineControl& control(); // what is in its slots, and how that is changed while it runs

    // Of what enters and leaves the prefix cache from now on: called at the end of a step, on its thread. `now_ns` on
    // the engine's clock.
    void on_kv_events(std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)>);
    // It sees each step from now on, and has to stay until it is taken away or the engine takes no more steps. [the
    // thread that steps, between steps]
    void observe(StepObserver&);
    void stop_observing(StepObserver&);
    StepFiles& files(); // that steps are written to [likewise]
    Result<> reset_prefix_cache();    // refused while blocks are in use
    View view() const;                // between steps, or from an observer
    // Which sequence holds which KV and what is cached, likewise.
    const kv::KvCache& kv() const;
    const kv::BlockTable* table_of(RequestId) const; // null: there is no such sequence
    // Whether queues, block tables, references and free list agree, which no policy may change: for tests, after each
    // step. O(sequences + blocks).
    Result<> audit() const;
    const EngineFacts& facts() const; // between steps; its plugins are those in the slots now
    const std::shared_ptr<const text::Tokenizer>& tokenizer() const; // null: ids only
    Clock& clock() override;

  private:
    struct Impl;
    class Builder;
    explicit Engine(std::unique_ptr<Impl>);
    std::unique_ptr<Impl> impl_;
};

}  // namespace patchbay::engine
