#include "unit/policies/plugins_fixture.hpp"
#include "paths.hpp"

namespace patchbay::policies {

const host::Registry& registry() {
    static const host::Registry all =
        must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
    return all;
}

const host::Services& services() {
    static ThreadPool pool(2);
    static const host::Services all{&pool.service(), nullptr, nullptr};
    return all;
}

World::World(const std::string& plugin, const host::Settings& settings)
    : scheduler(must(registry().scheduler(plugin, settings, services()))) {
    in.struct_size = sizeof in;
    in.sequence_stride = sizeof(pb_sequence);
    in.now_us = 1'000'000;
    in.max_num_batched_tokens = 1024;
    in.max_num_seqs = 16;
    in.block_size = 16;
    in.kv_groups = 1;
    in.free_pages = in.total_pages = 1000;
    in.flags = PB_STEP_CHUNKED_PREFILL;
}

pb_sequence& World::wait(uint64_t id, uint32_t prompt) {
    pb_sequence s{};
    s.id = s.group = id;
    s.arrival_us = id * 1000;
    s.prompt_tokens = prompt;
    s.max_tokens = 100;
    waiting.push_back(s);
    return waiting.back();
}

pb_sequence& World::run(uint64_t id, uint32_t prompt, uint32_t output, uint32_t computed) {
    pb_sequence s = wait(id, prompt);
    waiting.pop_back();
    s.output_tokens = output;
    s.computed_tokens = computed;
    s.pages = s.pages_freed_if_preempted = (computed + in.block_size - 1) / in.block_size;
    s.tokens_until_next_page = s.pages * in.block_size - computed;
    running.push_back(s);
    return running.back();
}

void World::arrive(const pb_sequence& s) {
    scheduler.table->arrived(scheduler.self(), &s, uint32_t{sizeof s});
}

void World::finish(uint64_t id, uint32_t output_tokens) {
    const pb_finished ended{sizeof ended, PB_FINISH_LENGTH, id, output_tokens, 0};
    scheduler.table->finished(scheduler.self(), &ended);
}

Planned World::plan() {
    in.running = running.data();
    in.running_count = static_cast<uint32_t>(running.size());
    in.waiting = waiting.data();
    in.waiting_count = static_cast<uint32_t>(waiting.size());
    in.step += 1;
    std::vector<pb_plan_item> items(in.max_num_seqs);
    std::vector<pb_preempt_item> preempts(running.size() + 1);
    pb_scheduler_out out{sizeof out, sizeof(pb_plan_item), in.max_num_seqs, sizeof(pb_preempt_item), items.data(), 0,
                         in.running_count, preempts.data(), 0, 0};
    const auto done = scheduler.component->check(scheduler.table->plan(scheduler.self(), &in, &out), "plan");
    if (!done) throw std::runtime_error(done.error());
    Planned p;
    for (uint32_t i = 0; i < out.item_count; ++i) {
        p.order.push_back(items[i].id);
        EXPECT_TRUE(p.tokens.emplace(items[i].id, items[i].tokens).second) << "planned twice";
    }
    for (uint32_t i = 0; i < out.preempt_count; ++i) p.preempted.push_back(preempts[i].id);
    return p;
}

}  // namespace patchbay::policies
