// The pause of a swap, by slot, with 256 sequences running: wall time, and CPU time of the thread.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "engine/loop/step_context.hpp"
#include "engine/placement/kv_policy_port.hpp"
#include "engine/swap/swaps.hpp"
#include "swap/swap_fixture.hpp"

namespace patchbay::engine::testing {
namespace {

constexpr uint32_t kSequences = 256, kSwaps = 400;

double percentile(std::vector<double> values, double p) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(p * static_cast<double>(values.size() - 1))];
}

void print(const char* name, const std::vector<double>& us) {
    std::printf("%-28s %8.1f %8.1f %8.1f\n", name, percentile(us, 0.5), percentile(us, 0.99), percentile(us, 1));
}

template <class F>
double us_of(const Clock& clock, F&& f) {
    const uint64_t start = clock.now_ns();
    f();
    return static_cast<double>(clock.now_ns() - start) * 1e-3;
}

// Of both, where the work is the thread's own.
class ThreadClock final : public Clock {
  public:
    uint64_t now_ns() const override {
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
    }
    void wait_until_ns(uint64_t) override {}
};

void swap_back_and_forth(Clock& clock, const char* of_clock, SwapSlot slot, const char* first, const char* second) {
    config::EngineConfig c = tiny_model();
    c.engine.num_blocks = 8192;
    c.engine.max_num_seqs = kSequences;
    c.engine.max_num_batched_tokens = 1024;
    c.engine.enable_prefix_caching = true;
    c.engine.num_speculative_tokens = 2;
    c.proposer = config::PluginChoice{"ngram", {}};
    c.kv_policy = config::PluginChoice{"lru", {}};
    c.swap = {.probation_steps = 1, .max_call_ms = 0};
    Swapping s(c, &clock);
    std::vector<double> us;
    uint32_t swaps = 0;
    std::shared_ptr<host::Swap> last;
    while (swaps < kSwaps) {
        for (size_t i = s.engine->view().running.size() + s.engine->view().waiting.size(); i < kSequences; ++i) {
            Request r;
            r.prompt = random_prompt(i, 24);
            r.sampling = greedy(200);
            if (!s.engine->add_request(std::move(r))) throw std::runtime_error("a request is refused");
        }
        if (!last || last->record().settled()) { // a kv_policy takes several boundaries to learn what is cached
            last = s.swap(slot, {swaps % 2 == 0 ? second : first, {}});
            swaps += 1;
        }
        for (const host::SwapRecord& r : s.step().swaps) {
            if (r.state == host::SwapState::kOnProbation) us.push_back(static_cast<double>(r.pause_ns) * 1e-3);
            else if (r.state != host::SwapState::kCommitted) throw std::runtime_error(r.text());
        }
    }
    print((std::string(name_of(slot)) + ", " + of_clock).c_str(), us);
}

// A cache full of pages, and a policy that takes over.
void adopt_cached_pages(Clock& clock, const char* of_clock, const char* name, uint32_t pages) {
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal(context, plugins);
    kv::KvCache kv(pages, 16, kv::PrefixCaching::kOn, "m");
    KvPolicyPort port(*swap_registry().kv_policy(name, {}, {}), kv, clock, context, journal);
    if (!port.adopt()) throw std::runtime_error("adopt");
    std::vector<int32_t> text(16 * 64);
    for (uint32_t i = 0; i < pages / 64; ++i) {
        for (size_t t = 0; t < text.size(); ++t) text[t] = static_cast<int32_t>(i * 7919 + t);
        kv::BlockTable table;
        if (!kv.tables().grow(table, static_cast<uint32_t>(text.size()))) throw std::runtime_error("no pages");
        kv.prefixes().cache_full_blocks(table, text);
        kv.tables().release(table);
    }
    port.update();
    std::vector<double> at_once, portions;
    for (int i = 0; i < 50; ++i) {
        at_once.push_back(us_of(clock, [&] {
            if (!port.adopt()) throw std::runtime_error("adopt");
        }));
        const auto next = *swap_registry().kv_policy(name, {}, {});
        for (bool knows_all = false; !knows_all;)
            portions.push_back(us_of(clock, [&] { knows_all = *port.warm_up(*next.component); }));
    }
    print((std::string("at once by ") + name + ", " + of_clock).c_str(), at_once);
    print((std::string("a portion by ") + name + ", " + of_clock).c_str(), portions);
}

// A slot that is never swapped, as the engine has six.
class QuietPort final : public SwapPort {
  public:
    explicit QuietPort(const Clock& clock) : slot_("scheduler", host::UnreadState::kStartsEmpty, clock) {}
    host::Slot& slot() override { return slot_; }
    void enter() override {}
    bool roll_back(const std::string&, const Failure&) override { return false; }
    bool computes() const override { return true; }
    StepCall call_of(const StepUse&) override { return {"plan", true, 0}; }

  private:
    host::Slot slot_;
};

// What a step pays where no swap is pending.
void pass_boundaries(Clock& clock, const char* of_clock) {
    StepContext context;
    std::vector<host::Identity> plugins;
    SwapJournal journal(context, plugins);
    std::vector<std::unique_ptr<QuietPort>> ports;
    std::vector<SwapPort*> list;
    for (size_t i = 0; i < kSwapSlots.size(); ++i)
        list.push_back(ports.emplace_back(std::make_unique<QuietPort>(clock)).get());
    const config::SwapSettings settings;
    Swaps swaps({settings, list, journal, context, clock});
    std::vector<double> us;
    constexpr int kSteps = 10'000;
    for (int i = 0; i < 100; ++i)
        us.push_back(us_of(clock, [&] {
                         for (int step = 0; step < kSteps; ++step) {
                             swaps.at_boundary(false);
                             if (swaps.step_may_be_redone() || swaps.waits_for_steps()) std::abort();
                             swaps.end_step({true, true});
                         }
                     }) /
                     kSteps);
    std::printf("%-28s %8.4f %8.4f %8.4f\n", of_clock, percentile(us, 0.5), percentile(us, 0.99), percentile(us, 1));
}

void run() {
    RealClock wall;
    ThreadClock thread;
    std::printf("microseconds, %u sequences    median      p99      max\n", kSequences);
    struct Of {
        SwapSlot slot;
        const char *first, *second;
    };
    for (const Of& of : {Of{SwapSlot::kScheduler, "fcfs", "sjf"}, Of{SwapSlot::kSampler, "standard", "standard"},
                         Of{SwapSlot::kProposer, "ngram", "suffix"}, Of{SwapSlot::kKvPolicy, "lru", "lfu"},
                         Of{SwapSlot::kAttention, "paged", "paged"}}) {
        swap_back_and_forth(wall, "wall", of.slot, of.first, of.second);
        swap_back_and_forth(thread, "thread CPU", of.slot, of.first, of.second);
    }
    std::printf("a step without a pending swap\n");
    pass_boundaries(wall, "wall");
    pass_boundaries(thread, "thread CPU");
    std::printf("100,000 cached pages\n");
    for (const char* name : {"lru", "lfu", "prefix_tree"}) {
        adopt_cached_pages(wall, "wall", name, 100'000);
        adopt_cached_pages(thread, "thread CPU", name, 100'000);
    }
}

}  // namespace
}  // namespace patchbay::engine::testing

int main() {
    spdlog::set_level(spdlog::level::warn);
    patchbay::engine::testing::run();
}
