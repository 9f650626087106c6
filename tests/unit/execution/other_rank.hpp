// Rank 1 of two, played by a thread of this process: it notes what rank 0 sends, and answers as a test says.
#pragma once
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/bytes.hpp"
#include "parallel/group.hpp"
#include "parallel/spoke.hpp"

namespace patchbay::execution::testing {

constexpr parallel::Deadlines kLong{60'000'000'000, 20'000'000'000, 60'000'000'000}; // none is over in a test

struct TwoRanks { // joined
    TwoRanks() {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no sockets");
        std::vector<parallel::Member> members;
        members.push_back({parallel::Socket(ends[0]), 1, 0});
        hub = std::make_shared<parallel::Hub>("job", 2, std::move(members), parallel::Socket(), kLong);
        spoke = std::make_unique<parallel::Spoke>(parallel::Socket(ends[1]), parallel::Hello{"job", 1, 2, 101, "h"},
                                                  kLong, nullptr);
        if (const auto done = hub->wait_until_joined(); !done) throw std::runtime_error(done.error());
    }
    std::unique_ptr<parallel::Spoke> spoke;
    std::shared_ptr<parallel::Hub> hub; // ends before the spoke, which hears of it
};

class OtherRank {
  public:
    OtherRank() : thread_([this] { serve(); }) {
        auto begun = parallel::Group::begin(ranks_.hub, {});
        if (!begun) throw std::runtime_error(begun.error());
        group = *std::move(begun);
    }
    ~OtherRank() {
        group.reset();
        ranks_.hub.reset();
        thread_.join();
    }
    OtherRank(const OtherRank&) = delete;

    std::unique_ptr<parallel::Group> group; // rank 0's, to be taken

    // ---- what a test says; before what it is the answer to
    void fail_next_step(std::string why) {
        const std::lock_guard lock(mutex_);
        step_fault_ = std::move(why);
    }
    void refuse_swaps(std::string why) { // empty: it does not
        const std::lock_guard lock(mutex_);
        swap_fault_ = std::move(why);
    }
    void load_until_dropped() { // a model's weights
        const std::lock_guard lock(mutex_);
        never_loads_ = true;
    }
    // ---- what it got; of messages that it need not answer: once a later one was answered
    struct Step {
        std::vector<std::vector<int32_t>> tokens; // by row
        std::vector<kv::PageCopy> copies;
    };
    std::vector<Step> steps() {
        const std::lock_guard lock(mutex_);
        return steps_;
    }
    std::vector<parallel::RankSwap> swaps() {
        const std::lock_guard lock(mutex_);
        return swaps_;
    }
    parallel::Hub& hub() { return *ranks_.hub; }
    int reconnects() {
        const std::lock_guard lock(mutex_);
        return reconnects_;
    }

  private:
    void serve() {
        using parallel::MessageType;
        parallel::Spoke& spoke = *ranks_.spoke;
        while (auto m = spoke.next()) {
            switch (m->type) {
                case MessageType::kStep: (void)step(m->bytes); break;
                case MessageType::kSwap: swap(m->bytes); break;
                case MessageType::kReconnect: {
                    const std::lock_guard lock(mutex_);
                    reconnects_ += 1;
                    (void)spoke.post(MessageType::kReply, "");
                    break;
                }
                case MessageType::kEnd: (void)spoke.post(MessageType::kEnded, ""); break;
                case MessageType::kQuit: return;
                default: break;
            }
        }
    }
    Result<> step(const std::string& message) {
        parallel::ByteReader in(message);
        const auto number = in.get<uint64_t>();
        const std::string step = in.text();
        parallel::StepRows rows;
        PB_CHECK(parallel::read_step(step, rows));
        const std::lock_guard lock(mutex_);
        Step& got = steps_.emplace_back();
        for (const runner::BatchRow& r : rows.rows()) got.tokens.emplace_back(r.tokens.begin(), r.tokens.end());
        got.copies = rows.copies();
        const std::string fault = std::exchange(step_fault_, "");
        parallel::ByteWriter out;
        out.put(number);
        if (!fault.empty()) out.put(fail(StatusCode::kExhausted, fault));
        return ranks_.spoke->post(
            fault.empty() ? parallel::MessageType::kStepDone : parallel::MessageType::kStepFailed, out.bytes());
    }
    void swap(const std::string& message) {
        const auto got = parallel::read_swap(message);
        if (!got) return;
        using Slot = parallel::RankSwap::Slot;
        using Verb = parallel::RankSwap::Verb;
        std::string answer;
        {
            const std::lock_guard lock(mutex_);
            swaps_.push_back(*got);
            if (never_loads_ && got->slot == Slot::kModel && got->verb == Verb::kPrepare) return;
            if (never_loads_ && got->slot == Slot::kModel && got->verb == Verb::kDrop) {
                const auto prepared = [&](const parallel::RankSwap& s) {
                    return s.verb == Verb::kPrepare && s.candidate == got->candidate;
                };
                const auto of = std::find_if(swaps_.begin(), swaps_.end(), prepared);
                (void)ranks_.spoke->set(parallel::swap_key(of->number, 1), parallel::answer_to_swap(fail("dropped")));
                return;
            }
            if (!swap_fault_.empty()) answer = parallel::answer_to_swap(unsupported(swap_fault_));
        }
        if (got->verb == Verb::kPrepare || got->verb == Verb::kUse)
            (void)ranks_.spoke->set(parallel::swap_key(got->number, 1), answer);
    }

    TwoRanks ranks_;
    std::mutex mutex_; // of what follows
    std::string step_fault_, swap_fault_;
    std::vector<Step> steps_;
    std::vector<parallel::RankSwap> swaps_;
    int reconnects_ = 0;
    bool never_loads_ = false;
    std::thread thread_;
};

}  // namespace patchbay::execution::testing
