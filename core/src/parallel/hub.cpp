#include "parallel/hub.hpp"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "parallel/address.hpp"
#include "parallel/bytes.hpp"
#include "parallel/peer.hpp"

namespace patchbay::parallel {

Hub::Hub(std::string job, uint32_t size, std::vector<Member> members, Socket listener, const Deadlines& deadlines)
    : job_(std::move(job)),
      size_(size),
      deadlines_(deadlines),
      listener_(std::move(listener)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (Member& m : members) {
        auto peer = std::make_unique<Peer>(std::move(m.socket));
        peer->info = {m.rank, static_cast<uint32_t>(m.child), host_name()};
        peer->child = m.child;
        if (m.child) peer->process = Socket(static_cast<int>(syscall(SYS_pidfd_open, m.child, 0)));
        peers_.push_back(std::move(peer));
    }
    thread_ = std::thread([this] { serve(); });
}

Hub::~Hub() {
    {
        const std::lock_guard lock(mutex_);
        (void)post_to_all(MessageType::kQuit, "");
        stopping_ = true;
        wake();
    }
    thread_.join();
}

void Hub::wake() const {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof one);
}

Result<> Hub::wait_until_joined() {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return all_joined() || !failure_.empty(); };
    if (changed_.wait_for(lock, std::chrono::nanoseconds(deadlines_.join), over)) {
        if (!failure_.empty()) return fail(failure_);
        return {};
    }
    std::string missing;
    for (uint32_t r = 1; r < size_; ++r)
        if (std::none_of(peers_.begin(), peers_.end(), [&](const auto& p) { return p->joined && p->info.rank == r; }))
            missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    return fail(StatusCode::kUnavailable, "of " + std::to_string(size_) + " ranks these did not join within " +
                std::to_string(deadlines_.join / 1'000'000'000) + " s: " + missing);
}

std::vector<RankInfo> Hub::ranks() const {
    const std::lock_guard lock(mutex_);
    std::vector<RankInfo> out;
    for (const auto& p : peers_)
        if (p->joined) out.push_back(p->info);
    return out;
}

std::string Hub::address() const {
    const std::lock_guard lock(mutex_);
    for (const auto& p : peers_)
        if (p->joined) return local_address(Socket(dup(p->connection.fd())));
    return "127.0.0.1";
}

std::string Hub::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

std::string Hub::explain(const std::string& own_fault) {
    constexpr uint64_t kDecision = 1'000'000'000; // time for the hub's decision, beyond a heartbeat
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(deadlines_.heartbeat + kDecision),
                      [&] { return !failure_.empty(); });
    return failure_.empty() ? own_fault : failure_;
}

Result<> Hub::post_to_all(MessageType type, std::string_view bytes) {
    if (!failure_.empty()) return fail(failure_);
    for (const auto& p : peers_) {
        if (!p->joined || p->closed) continue;
        if (const auto posted = p->connection.post(type, bytes); !posted)
            return fail(text_of(p->info) + " " + posted.error());
        if (p->connection.has_backlog()) wake();
    }
    return {};
}

void Hub::watch(std::function<void()> on_failure) {
    const std::lock_guard lock(mutex_);
    on_failure_ = std::move(on_failure);
    if (on_failure_ && !failure_.empty()) on_failure_();
}

Result<> Hub::begin(std::string_view what) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return fail(failure_);
    if (in_session_) return fail(StatusCode::kUnavailable, "the ranks are busy with another engine");
    values_.clear();
    step_starts_.clear();
    for (const auto& p : peers_) {
        p->replies.clear();
        p->questions.clear();
        p->ended = false;
    }
    in_session_ = true;
    return post_to_all(MessageType::kBegin, what);
}

Result<> Hub::broadcast(MessageType type, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    return post_to_all(type, bytes);
}

Result<std::vector<std::string>> Hub::gather() {
    std::unique_lock lock(mutex_);
    const auto is_missing = [](const auto& p) { return p->joined && p->replies.empty(); };
    const auto over = [&] { return !failure_.empty() || std::none_of(peers_.begin(), peers_.end(), is_missing); };
    if (!changed_.wait_for(lock, std::chrono::nanoseconds(deadlines_.load), over)) {
        const auto late = std::find_if(peers_.begin(), peers_.end(), is_missing);
        declare(text_of((*late)->info) + " hangs: it loads since " + seconds(deadlines_.load), Lasts::kForGood);
    }
    if (!failure_.empty()) return fail(failure_);
    std::vector<std::string> out(size_ - 1);
    for (const auto& p : peers_) {
        if (!p->joined) continue;
        out[p->info.rank - 1] = std::move(p->replies.front());
        p->replies.pop_front();
    }
    return out;
}

Result<uint64_t> Hub::step(std::string_view batch) {
    const std::lock_guard lock(mutex_);
    ByteWriter out;
    out.put(++steps_);
    out.put(batch);
    PB_CHECK(post_to_all(MessageType::kStep, out.bytes()));
    step_starts_[steps_] = clock_.now_ns();
    return out.bytes().size();
}

void Hub::end(const std::string& why) {
    constexpr auto kLongest = std::chrono::seconds(10);
    std::unique_lock lock(mutex_);
    if (!in_session_) return;
    in_session_ = false;
    step_starts_.clear();
    const auto is_lost = [&] { return !failure_.empty() && failure_lasts_ == Lasts::kForGood; };
    if (is_lost() || (failure_.empty() && !post_to_all(MessageType::kEnd, why))) return; // a failure was sent to them
    const bool over = changed_.wait_for(lock, kLongest, [&] {
        return is_lost() ||
               std::all_of(peers_.begin(), peers_.end(), [](const auto& p) { return !p->joined || p->ended; });
    });
    if (!over) return declare("a rank did not end what it did for an engine that is gone", Lasts::kForGood);
    if (is_lost()) return;
    failure_.clear(); // the ranks may be able to serve the next engine
    if (suspicion_ && suspicion_->passes) suspicion_.reset();
}

void Hub::store(const std::string& key, std::string value) {
    const auto stored = values_.emplace(key, std::move(value)); // clang 14: lambdas cannot capture structured bindings
    if (!stored.second) return;
    for (const auto& p : peers_)
        std::erase_if(p->questions, [&](const Peer::Question& q) {
            if (q.key == key) answer(*p, q.number, &stored.first->second);
            return q.key == key;
        });
    changed_.notify_all();
}

Result<> Hub::set(const std::string& key, std::string value) {
    const std::lock_guard lock(mutex_);
    if (values_.contains(key)) return fail("'" + key + "' is set already");
    store(key, std::move(value));
    return {};
}

Result<> Hub::wait_for(std::unique_lock<std::mutex>& lock, const std::string& key) {
    const bool over = changed_.wait_for(lock, std::chrono::nanoseconds(deadlines_.load),
                                        [&] { return !failure_.empty() || values_.contains(key); });
    if (!failure_.empty()) return fail(failure_);
    if (!over) return fail(StatusCode::kUnavailable,
                           "no rank has set '" + key + "' within " + seconds(deadlines_.load));
    return {};
}

Result<std::string> Hub::get(const std::string& key) {
    std::unique_lock lock(mutex_);
    PB_CHECK(wait_for(lock, key));
    return values_.at(key);
}

Result<std::string> Hub::take(const std::string& key) {
    std::unique_lock lock(mutex_);
    PB_CHECK(wait_for(lock, key));
    return std::move(values_.extract(key).mapped());
}

}  // namespace patchbay::parallel
