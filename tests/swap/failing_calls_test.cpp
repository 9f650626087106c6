// A swap of each slot is prepared while the n-th allocation, descriptor, byte of a file or page of memory cannot be
// had: it is refused, and the engine goes on as if nothing had been.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "engine/swap/swap_control.hpp"
#include "swap/checkpoint_fixture.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true; // which has an allocator of its own
#else
constexpr bool kSanitized = false;
#endif

namespace {
thread_local int64_t allocations_left = -1; // of this thread, before the one that fails; −1: none does
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Not inlined: the compiler would take their free() for one of memory that the usual operator new gave.
[[gnu::noinline]] void* operator new(size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    if (void* p = std::malloc(size ? size : 1)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace patchbay::engine::failing_calls_test {
namespace {

using namespace testing;
using host::SwapState;
namespace fs = std::filesystem;

struct Wanted {
    SwapSlot slot;
    std::string plugin;
};
void PrintTo(const Wanted& w, std::ostream* out) { *out << name_of(w.slot); }

class Limit { // of this process, for as long as it lives
  public:
    Limit(__rlimit_resource what, rlim_t value) : what_(what) {
        getrlimit(what_, &before_);
        const rlimit now{value, before_.rlim_max};
        setrlimit(what_, &now);
    }
    ~Limit() { setrlimit(what_, &before_); }

  private:
    const __rlimit_resource what_;
    rlimit before_{};
};

uint64_t mapped_bytes() {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<uint64_t>(getpagesize());
}

rlim_t next_descriptor() {
    const int fd = dup(1);
    close(fd);
    return static_cast<rlim_t>(fd);
}

class FailingCalls : public ::testing::TestWithParam<Wanted> {
  protected:
    static config::EngineConfig config() {
        config::EngineConfig c = demo_engine(demo_path());
        c.engine.num_speculative_tokens = 3;
        c.engine.threads = 1;
        c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
        c.kv_policy = config::PluginChoice{"lru", {}};
        c.sampler.plugin = "standard";
        return c;
    }

    FailingCalls() : s(config()), wanted{GetParam().slot, {GetParam().plugin, {}}, swap_registry(), prober()} {
        signal(SIGXFSZ, SIG_IGN);
        s.add_requests();
        s.step();
        prepare(); // the probe has passed, and what is made once is made
    }

    std::shared_ptr<host::Swap> prepare() {
        return s.engine->control().swaps().prepare(wanted);
    }
    // True: nothing failed.
    bool is_ready(const std::shared_ptr<host::Swap>& swap) {
        const host::SwapRecord r = swap->record();
        if (r.state == SwapState::kReady) return true;
        EXPECT_EQ(r.state, SwapState::kRefused) << r.text();
        EXPECT_NE(r.reason, "");
        refused += 1;
        if (s.engine->has_unfinished() && refused % 10 == 0) s.step();
        return false;
    }
    // After all of it the engine is as ever, and the swap can take place.
    void expect_unharmed() {
        EXPECT_GT(refused, 0u);
        const auto swap = prepare();
        EXPECT_EQ(swap->record().state, SwapState::kReady) << swap->record().text();
        EXPECT_TRUE(s.engine->audit());
        const Texts texts = s.run();
        Swapping alone(config());
        alone.add_requests();
        EXPECT_EQ(texts, alone.run());
    }

    Swapping s;
    const SwapRequest wanted;
    size_t refused = 0;
};

// A checkpoint's files are read into such documents; an allocation by a destructor would end the process.
TEST(EmptiesJson, AllocatesNothing) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own (run it without)";
    {
        nlohmann::json document = nlohmann::json::parse(R"({"a": [1, {"b": [[], {"c": "d"}]}], "e": {"f": 1.5}})");
        allocations_left = 0;
        { const EmptiesJson empties(document); }
    } // the document's own destructor
    const bool none_made = allocations_left == 0;
    allocations_left = -1;
    EXPECT_TRUE(none_made);
}

// PATCHBAY_EVERY_FAULT: each n, in place of fewer and fewer.
int64_t after(int64_t n) { return n + 1 + (std::getenv("PATCHBAY_EVERY_FAULT") ? 0 : n / 12); }

TEST_P(FailingCalls, TheNthAllocation) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own (run it without)";
    for (int64_t n = 0;; n = after(n)) {
        allocations_left = n;
        const auto swap = prepare();
        const bool all_had = allocations_left >= 0;
        allocations_left = -1;
        is_ready(swap); // where a fault does not matter it may be
        if (all_had) break;
    }
    expect_unharmed();
}

TEST_P(FailingCalls, TheNthDescriptor) {
    if (kSanitized) GTEST_SKIP() << "UBSan looks at a type through a pipe, and takes it for wrong without one";
    const rlim_t first = next_descriptor();
    bool ready = false;
    for (rlim_t n = first; n < first + 20 && !ready; ++n) {
        ready = is_ready([&] {
            const Limit limit(RLIMIT_NOFILE, n);
            return prepare();
        }());
        if (!ready) { EXPECT_EQ(next_descriptor(), first) << "one is left open where " << n << " may be"; }
    }
    EXPECT_TRUE(ready);
    expect_unharmed();
}

TEST_P(FailingCalls, TheNthByteOfAFile) {
    const fs::path folder = fs::path(::testing::TempDir()) / ("failing_" + std::to_string(getpid()));
    const char* const before = std::getenv("PATCHBAY_CACHE");
    const std::string kept = before ? before : "";
    for (const rlim_t bytes : {0, 1, 4096, 8191}) {
        fs::create_directories(folder);
        fs::permissions(folder, fs::perms::owner_all);
        setenv("PATCHBAY_CACHE", folder.c_str(), 1); // of which no copy is there yet
        {
            const Limit limit(RLIMIT_FSIZE, bytes);
            EXPECT_FALSE(is_ready(prepare())) << bytes;
        }
        before ? setenv("PATCHBAY_CACHE", kept.c_str(), 1) : unsetenv("PATCHBAY_CACHE");
        fs::remove_all(folder);
    }
    expect_unharmed();
}

// Also what the loader maps.
TEST_P(FailingCalls, TheNthPageOfMemory) {
    if (kSanitized) GTEST_SKIP() << "a sanitizer maps more than any limit (run it without)";
    constexpr uint64_t kStep = 64 << 10;
    for (uint64_t more = 0;; more += kStep) {
        ASSERT_LT(more, uint64_t{64} << 20);
        const auto swap = [&] {
            const Limit limit(RLIMIT_AS, mapped_bytes() + more);
            return prepare();
        }();
        if (is_ready(swap)) break;
    }
    expect_unharmed();
}

INSTANTIATE_TEST_SUITE_P(Swaps, FailingCalls,
                         ::testing::Values(Wanted{SwapSlot::kScheduler, "sjf"}, Wanted{SwapSlot::kSampler, "greedy"},
                                           Wanted{SwapSlot::kProposer, "suffix"}, Wanted{SwapSlot::kKvPolicy, "lfu"},
                                           Wanted{SwapSlot::kAttention, "reference"},
                                           Wanted{SwapSlot::kModel, demo_path()}),
                         [](const auto& p) { return std::string(name_of(p.param.slot)); });

}  // namespace
}  // namespace patchbay::engine::failing_calls_test
