#include "parallel/hub.hpp"

#include <algorithm>
#include <chrono>

#include "base/refusals.hpp"
#include "parallel/address.hpp"
#include "parallel/bytes.hpp"
#include "parallel/hub_state.hpp"
#include "parallel/hub_thread.hpp"

namespace patchbay::parallel {

using Lasts = RankFailure::Lasts;

Hub::Hub(std::string job, uint32_t size, std::vector<Member> members, Socket listener, const Deadlines& deadlines)
    : state_(std::make_unique<HubState>(size, std::move(members), deadlines)),
      thread_(std::make_unique<HubThread>(*state_, std::move(job), std::move(listener))) {}

Hub::~Hub() = default;

uint32_t Hub::size() const { return state_->peers.size(); }

Result<> Hub::wait_until_joined() {
    HubState& s = *state_;
    std::unique_lock lock(s.mutex);
    const auto over = [&] { return s.peers.all_joined() || s.failure.exists(); };
    if (s.changed.wait_for(lock, std::chrono::nanoseconds(s.deadlines.join), over)) {
        if (s.failure.exists()) return s.failure.why();
        return {};
    }
    return unavailable("of " + std::to_string(size()) + " ranks these did not join within " +
                       seconds(s.deadlines.join) + ": " + s.peers.missing());
}

std::vector<RankInfo> Hub::ranks() const {
    const std::lock_guard lock(state_->mutex);
    return state_->peers.ranks();
}

std::string Hub::address() const {
    const std::lock_guard lock(state_->mutex);
    return state_->peers.address();
}

Result<> Hub::check() const {
    const std::lock_guard lock(state_->mutex);
    return state_->failure.exists() ? Result<>(state_->failure.why()) : Result<>();
}

Failure Hub::explain(const Failure& own_fault) {
    constexpr uint64_t kDecision = 1'000'000'000; // time for the hub's decision, beyond a heartbeat
    HubState& s = *state_;
    std::unique_lock lock(s.mutex);
    s.changed.wait_for(lock, std::chrono::nanoseconds(s.deadlines.heartbeat + kDecision),
                       [&] { return s.failure.exists(); });
    return s.failure.exists() ? s.failure.why() : own_fault;
}

void Hub::watch(std::function<void()> on_failure) {
    HubState& s = *state_;
    const std::lock_guard lock(s.mutex);
    s.on_failure = std::move(on_failure);
    if (s.on_failure && s.failure.exists()) s.on_failure();
}

Result<> Hub::begin(std::string_view what) {
    HubState& s = *state_;
    Result<> posted;
    {
        const std::lock_guard lock(s.mutex);
        if (s.failure.exists()) return s.failure.why();
        if (s.in_session) return unavailable("the ranks are busy with another engine");
        s.store.clear();
        s.steps.clear();
        s.trial.end();
        for (const auto& p : s.peers.all()) {
            p->replies.clear();
            p->ended = false;
        }
        s.in_session = true;
        posted = s.post_to_ranks(MessageType::kBegin, what);
    }
    if (!posted) end(posted.error()); // on the ranks that have begun
    return posted;
}

Result<> Hub::broadcast(MessageType type, std::string_view bytes) {
    const std::lock_guard lock(state_->mutex);
    return state_->post_to_ranks(type, bytes);
}

Result<std::vector<std::string>> Hub::gather(Doing doing) {
    HubState& s = *state_;
    const bool loads = doing == Doing::kLoads;
    const uint64_t longest = loads ? s.deadlines.load : s.deadlines.step;
    std::unique_lock lock(s.mutex);
    const auto& peers = s.peers.all();
    const auto is_missing = [](const auto& p) { return p->joined && p->replies.empty(); };
    const auto over = [&] { return s.failure.exists() || std::none_of(peers.begin(), peers.end(), is_missing); };
    if (!s.changed.wait_for(lock, std::chrono::nanoseconds(longest), over)) {
        const auto late = std::find_if(peers.begin(), peers.end(), is_missing);
        s.declare(fail(text_of((*late)->info) + " hangs: it has been " +
                       (loads ? "loading" : "connecting its device") + " for " + seconds(longest)),
                  Lasts::kForGood);
    }
    if (s.failure.exists()) return s.failure.why();
    std::vector<std::string> out(size() - 1);
    for (const auto& p : peers) {
        if (!p->joined) continue;
        out[p->info.rank - 1] = std::move(p->replies.front());
        p->replies.pop_front();
    }
    return out;
}

Result<uint64_t> Hub::step(std::string_view batch, IfItFails then) {
    HubState& s = *state_;
    const std::lock_guard lock(s.mutex);
    const uint64_t number = s.steps.next();
    if (then == IfItFails::kIsRedone) s.trial.begin(number);
    else s.trial.end();
    ByteWriter out;
    out.put(number);
    out.put(batch);
    PB_CHECK(s.post_to_ranks(MessageType::kStep, out.bytes()));
    s.steps.sent(number, s.clock.now_ns());
    return out.bytes().size();
}

Result<> Hub::wait_for_step() { // a rank that hangs in it is a failure
    HubState& s = *state_;
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return s.failure.exists() || s.trial.fault() || !s.steps.any(); });
    if (s.failure.exists()) return s.failure.why();
    return s.trial.fault() ? Result<>(*s.trial.fault()) : Result<>();
}

Result<std::optional<Failure>> Hub::reconnect(std::string_view connection) {
    HubState& s = *state_;
    const std::lock_guard lock(s.mutex);
    s.trial.give_up();
    PB_CHECK(s.post_to_ranks(MessageType::kReconnect, connection));
    return s.trial.fault();
}

void Hub::fail_session(const Failure& why) {
    const std::lock_guard lock(state_->mutex);
    state_->declare(why, Lasts::kForTheSession);
}

void Hub::end(const std::string& why) {
    constexpr auto kLongest = std::chrono::seconds(10);
    HubState& s = *state_;
    std::unique_lock lock(s.mutex);
    if (!s.in_session) return;
    s.in_session = false;
    s.steps.clear();
    s.trial.end();
    if (s.failure.is_lasting()) return;
    if (!s.failure.exists() && !s.post_to_ranks(MessageType::kEnd, why)) return; // a failure was sent to them
    const bool over = s.changed.wait_for(lock, kLongest, [&] {
        const auto& peers = s.peers.all();
        return s.failure.is_lasting() ||
               std::all_of(peers.begin(), peers.end(), [](const auto& p) { return !p->joined || p->ended; });
    });
    if (!over) return s.declare(fail("a rank did not end what it did for an engine that is gone"), Lasts::kForGood);
    if (!s.failure.is_lasting()) s.failure.end_session(); // the ranks may be able to serve the next engine
}

Result<> Hub::set(const std::string& key, std::string value) {
    HubState& s = *state_;
    const std::lock_guard lock(s.mutex);
    if (s.store.contains(key)) return invalid("'" + key + "' is set already");
    s.store.set(key, std::move(value));
    s.changed.notify_all();
    return {};
}

Result<> Hub::wait_for(std::unique_lock<std::mutex>& lock, const std::string& key) {
    HubState& s = *state_;
    const bool over = s.changed.wait_for(lock, std::chrono::nanoseconds(s.deadlines.load),
                                         [&] { return s.failure.exists() || s.store.contains(key); });
    if (s.failure.exists()) return s.failure.why();
    if (!over) return unavailable("no rank has set '" + key + "' within " + seconds(s.deadlines.load));
    return {};
}

Result<std::string> Hub::get(const std::string& key) {
    std::unique_lock lock(state_->mutex);
    PB_CHECK(wait_for(lock, key));
    return state_->store.get(key);
}

Result<std::string> Hub::take(const std::string& key) {
    std::unique_lock lock(state_->mutex);
    PB_CHECK(wait_for(lock, key));
    return state_->store.take(key);
}

Result<std::string> Hub::take_from(const RankInfo& rank, const std::string& key) {
    HubState& s = *state_;
    std::unique_lock lock(s.mutex);
    const auto over = [&] { return s.failure.exists() || s.store.contains(key); };
    if (!s.changed.wait_for(lock, std::chrono::nanoseconds(s.deadlines.step), over))
        s.declare(fail(text_of(rank) + " hangs: it has been swapping a plugin for " + seconds(s.deadlines.step)),
                  Lasts::kForGood);
    if (s.failure.exists()) return s.failure.why();
    return s.store.take(key);
}

void Hub::forget(std::string_view prefix) {
    const std::lock_guard lock(state_->mutex);
    state_->store.forget(prefix);
}

}  // namespace patchbay::parallel
