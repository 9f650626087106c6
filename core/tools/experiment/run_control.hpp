// Live control of a run while it goes on, inside its process and on the thread that steps. The program brings it along
// (serve::LoopControl); experiments know no more of it than this.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace patchbay::experiment {

class RunControl {
  public:
    virtual ~RunControl() = default; // before the engine ends
    virtual void between_steps() = 0; // before each step
    virtual void on_request(engine::RequestId, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) = 0;
    virtual void on_output(const engine::RequestOutput&) = 0;
    virtual bool draining() const = 0; // the run is to end with the requests that have arrived
    virtual std::vector<std::string> end() = 0; // no step comes any more; what was changed by hand, in words
};

struct ControlChoice { // the flags --admin and --admin-token-file
    std::string address, token_file;
};

struct ControlledRun {
    engine::Engine& engine;
    const config::EngineConfig& config;
    const std::vector<std::string>& plugin_dirs;
    ControlChoice choice;
    std::string task;  // "run quickstart, variant sjf, repeat 3"
    bool simulated;    // its times are made up
};
using MakeRunControl = std::function<Result<std::unique_ptr<RunControl>>(const ControlledRun&)>; // null: none

}  // namespace patchbay::experiment
