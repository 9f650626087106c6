// What every step touches: the thread that steps asks for it while it waits for the others behind an op.
#include "engine/state.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kPluginCode = 2048; // bytes of a function and what it calls
constexpr size_t kPluginState = 256; // of an object
constexpr size_t kSequences = 16;    // of the step; with more of them there is time to save elsewhere

Memory memory_at(const void* address, size_t bytes) { // of nothing: nothing
    return {static_cast<const std::byte*>(address), address ? bytes : 0};
}

}  // namespace

// Sizes of what is a plugin's are guessed: it is asked for without being read.
std::vector<Memory> Engine::State::list_components() const {
    std::vector<Memory> list;
    const auto add = [&](const host::Component& c, const auto& table, auto... functions) {
        list.insert(list.end(), {memory_of(c), memory_of(c.type()), memory_of(table)});
        for (const void* function : {reinterpret_cast<const void*>(functions)...})
            list.push_back(memory_at(function, kPluginCode));
        list.push_back(memory_at(c.self(), kPluginState));
    };
    const auto& device = host::table_of<pb_device>(runner->device());
    add(runner->device(), device, device.end_step, device.begin_step);
    const auto& samples = host::table_of<pb_sampler>(sampler.current());
    add(sampler.current(), samples, samples.sample);
    const auto& plans = host::table_of<pb_scheduler>(scheduler.current());
    add(scheduler.current(), plans, plans.plan);
    const auto& attends = host::table_of<pb_attention>(runner->attention());
    add(runner->attention(), attends, attends.plan);
    runner->list_touched(list);
    return list;
}

// What is the host's, but for the runner's. Of sequences those that the step computes.
PB_STEP_TEXT void Engine::State::list_state() {
    touched.assign({memory_of(*this), memory_of(*kv)});
    list_fronts(touched, running, running_records, items, preempts, planned, to_preempt, scheduled, taken_rows,
                batch_rows, sample_rows, sampled, sampled_logprobs, sampled_surprise, told);
    batch.list_touched(touched);
    for (const Scheduled& item : std::span(scheduled).first(std::min(scheduled.size(), kSequences))) {
        const Sequence& s = *item.sequence;
        touched.push_back(memory_of(s));
        list_back(touched, s.tokens);
        list_back(touched, s.delta.tokens);
        list_fronts(touched, s.table.pages, s.table.passed);
        for (const auto& pages : s.table.pages) list_back(touched, pages);
    }
}

PB_STEP_TEXT void Engine::State::ask_for_touched() {
    list_state();
    for (const Memory what : touched) ask_for(what);
    if (!std::exchange(lists_anew, false) && report.admitted == 0) return;
    std::vector<Memory> behind_jobs = list_components(); // first what nobody asks for after the pass
    behind_jobs.push_back(step_text());
    behind_jobs.insert(behind_jobs.end(), touched.begin(), touched.end()); // where arrays lie that do not grow any more
    pool->ask_while_waiting(std::move(behind_jobs));
}

}  // namespace patchbay::engine
