// What every step touches: the thread that steps asks for it while it waits for the others behind an op.
#include "engine/state.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kPluginCode = 2048; // bytes of a function and what it calls
constexpr size_t kPluginState = 256; // of an object

Memory memory_at(const void* address, size_t bytes) { // of nothing: nothing
    return {static_cast<const std::byte*>(address), address ? bytes : 0};
}

}  // namespace

// Sizes of what is a plugin's are guessed: it is asked for without being read.
void Engine::State::list_touched() {
    std::vector<Memory> touched = {step_text(), memory_of(*runner), memory_of(*this), memory_of(*kv)};
    const auto add = [&](const host::Component& c, const auto& table, auto... functions) {
        touched.insert(touched.end(), {memory_of(c), memory_of(c.type()), memory_of(table)});
        for (const void* function : {reinterpret_cast<const void*>(functions)...})
            touched.push_back(memory_at(function, kPluginCode));
        touched.push_back(memory_at(c.self(), kPluginState));
    };
    const auto& device = host::table_of<pb_device>(runner->device());
    add(runner->device(), device, device.end_step, device.begin_step);
    const auto& samples = host::table_of<pb_sampler>(sampler.current());
    add(sampler.current(), samples, samples.sample);
    const auto& plans = host::table_of<pb_scheduler>(scheduler.current());
    add(scheduler.current(), plans, plans.plan);
    const auto& attends = host::table_of<pb_attention>(runner->attention());
    add(runner->attention(), attends, attends.plan);
    pool->ask_while_waiting(std::move(touched));
}

}  // namespace patchbay::engine
