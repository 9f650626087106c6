// The engine: requests in, tokens out, one step at a time. docs/architecture.md shows its parts.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "engine/facts.hpp"
#include "engine/request.hpp"
#include "engine/stepping.hpp"
#include "engine/swap/swap_request.hpp"
#include "engine/swap/swap_slot.hpp"
#include "engine/view.hpp"
#include "host/component.hpp"
#include "host/swap.hpp"
#include "runner/model_work.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::host {
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

class StepFiles;
class StepObserver;
class SwapControl;
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
    // Compiles what requests may ask for in structured_outputs ahead of them, so that add_request() finds it: compiling
    // takes up to a second, and add_request() may hold up the steps. [any thread, also while another one steps]
    Result<> compile_grammar(const grammar::StructuredOutputs&);
    // In any state; unknown ids are ignored. By a callback of a step: the request ends with the step, and is handed
    // nothing more of it.
    void abort(RequestId) override;
    bool has_unfinished() const override; // requests, a step in flight, or a swap on its way into its slot
    // That a step is possible; for those who have none to run. The failure: a rank has gone.
    Result<> check() const override;
    // Runs one step, or waits on the clock for the next arrival if nothing can run. Fails only if the engine cannot
    // go on.
    Result<StepReport> step() override;

    // Puts another component into a slot between two steps, by docs/hot-swap.md. What can be done beside the steps is
    // done before it returns; the rest, and what came of it, is in the swap. [any thread but the one that steps; that
    // one too, between steps]
    std::shared_ptr<host::Swap> swap(const SwapRequest&);
    // The same for several slots, which succeed or fail together, as SwapControl::prepare_together().
    std::vector<std::shared_ptr<host::Swap>> swap_together(const std::vector<SwapRequest>&);
    SwapControl& swaps(); // which prepares and posts them one after the other

    // As it was made, but for what is in its slots now. [the thread that steps, between steps]
    config::EngineConfig configuration() const;
    // Before its first step, of an engine that goes on in place of another one: it numbers its steps on from there, and
    // the first one reports the swap of the model that it is.
    void take_over(uint64_t step, host::SwapRecord);

    // Hot parameters of the component in a slot get other values, all of them or none; what is not given stays. [the
    // thread that steps, between steps]
    Result<> configure(SwapSlot, const host::Settings& changes);
    host::Settings settings(SwapSlot) const; // of the component in a slot, defaults included; none: it is empty

    // Of what enters and leaves the prefix cache from now on: called at the end of a step, on its thread. `now_ns` on
    // the engine's clock.
    void on_kv_events(std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)>);
    // It sees each step from now on, and has to stay until it is taken away or the engine takes no more steps. [the
    // thread that steps, between steps]
    void observe(StepObserver&);
    void stop_observing(StepObserver&);
    StepFiles& files(); // that steps are written to [likewise]
    // Of another engine, whose place and components this one takes: swaps on probation are committed, those in line
    // refused. Reported with this engine's next step. [likewise, of both]
    void end_swaps_of(Engine& other);
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
