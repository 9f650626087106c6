// The hub's own thread: receives from the ranks, answers for the store, and finds out which rank died or hangs.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "parallel/address.hpp"
#include "parallel/bytes.hpp"
#include "parallel/peer.hpp"

namespace patchbay::parallel {
namespace {

constexpr uint64_t kGrace = 1000 * kMillisecond;     // in which a more likely cause may appear
constexpr uint64_t kQuitGrace = 2'000 * kMillisecond; // for children to end by themselves
constexpr size_t kMaxStrangers = 64;                // connections without a hello
constexpr size_t kMaxHello = 1024;                  // bytes
constexpr size_t kMaxKey = 128, kMaxValue = 64 << 10, kMaxValues = 4096, kMaxQueue = 1024;
enum Weight { kReported = 1, kClosed = 2, kEnded = 3 };

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    }
    return "exited with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void Hub::serve() {
    std::unique_lock lock(mutex_);
    uint64_t beat_ns = 0, killed_ns = 0;
    last_round_ns_ = clock_.now_ns();
    for (;;) {
        lock.unlock();
        wait_for_events();
        lock.lock();
        const uint64_t now = clock_.now_ns();
        // A process that was stopped itself cannot know which ranks were silent meanwhile.
        if (now - last_round_ns_ > deadlines_.heartbeat / 2)
            for (const auto& p : peers_) p->heard_ns = now;
        last_round_ns_ = now;
        accept_all(now);
        drop_silent_strangers(now);
        for (size_t i = 0; i < peers_.size(); ++i)
            if (!peers_[i]->closed) hear(*peers_[i], now);
        if (now - beat_ns >= deadlines_.beat()) {
            beat_ns = now;
            for (const auto& p : peers_)
                if (p->joined && !p->closed) (void)p->connection.post(MessageType::kBeat);
        }
        look_for_the_dead(now);
        if (!stopping_) {
            look_for_the_hung(now);
            decide(now);
        }
        std::erase_if(peers_, [&](const auto& p) { return (p->closed || all_joined()) && !p->joined && !p->child; });
        if (!stopping_) continue;
        if (killed_ns == 0) killed_ns = now + (failure_.empty() ? kQuitGrace : 0);
        const bool late = now >= killed_ns;
        const auto is_through = [&](const std::unique_ptr<Peer>& p) {
            if (p->child && late) kill(p->child, SIGKILL);
            return !p->child && (p->closed || late || !p->connection.has_backlog());
        };
        if (std::count_if(peers_.begin(), peers_.end(), is_through) == static_cast<ptrdiff_t>(peers_.size())) return;
    }
}

void Hub::wait_for_events() { // without the mutex: only this thread changes peers_
    std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}};
    {
        const std::lock_guard lock(mutex_);
        if (listener_.get() >= 0) waits.push_back({listener_.get(), POLLIN, 0});
        for (const auto& p : peers_) {
            const auto events = static_cast<short>(POLLIN | (p->connection.has_backlog() ? POLLOUT : 0));
            if (!p->closed) waits.push_back({p->connection.fd(), events, 0});
            if (p->child) waits.push_back({p->process.get(), POLLIN, 0});
        }
    }
    poll(waits.data(), waits.size(), static_cast<int>(std::min(deadlines_.beat(), kGrace / 3) / kMillisecond));
    uint64_t ignored;
    (void)!read(wake_.get(), &ignored, sizeof ignored);
}

// A rank sends its hello as soon as it is connected, so it is read before the next one is accepted. The longest silent
// connection is closed first.
void Hub::accept_all(uint64_t now) {
    constexpr size_t kAtOnce = 256; // so that members are read, too
    if (all_joined()) listener_.reset();
    for (size_t i = 0; i < kAtOnce && listener_.get() >= 0 && !all_joined(); ++i) {
        Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (socket.get() < 0) return;
        peers_.push_back(std::make_unique<Peer>(std::move(socket)));
        peers_.back()->connection.take_at_most(kMaxHello);
        peers_.back()->since_ns = now;
        hear(*peers_.back(), now);
        drop_oldest_stranger(now);
    }
}

bool Hub::is_stranger(const Peer& p) const { return !p.joined && !p.child && !p.closed && p.since_ns > 0; }

void Hub::drop_oldest_stranger(uint64_t now) {
    const auto stranger = [this](const auto& p) { return is_stranger(*p); };
    if (static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(), stranger)) <= kMaxStrangers) return;
    Peer& oldest = **std::find_if(peers_.begin(), peers_.end(), stranger); // peers_ are in order of arrival
    hear(oldest, now);
    if (is_stranger(oldest)) drop(oldest);
}

void Hub::drop_silent_strangers(uint64_t now) {
    for (const auto& p : peers_)
        if (is_stranger(*p) && now >= p->since_ns + deadlines_.hello) drop(*p);
}

void Hub::drop(Peer& p) {
    p.closed = true;
    p.connection.close();
}

void Hub::hear(Peer& p, uint64_t now) {
    std::vector<Message> arrived;
    Result<> heard = p.connection.receive(arrived);
    if (!arrived.empty()) p.heard_ns = now;
    for (const Message& m : arrived)
        if (const auto taken = take(p, m); !taken) {
            heard = fail(taken.error());
            break;
        }
    if (heard) heard = p.connection.flush();
    if (heard) return;
    p.closed = true;
    p.connection.close();
    if (!stopping_ && (p.joined || p.child)) suspect(p, kClosed, p.child ? kGrace : 0, heard.error());
}

Result<> Hub::take(Peer& p, const Message& m) {
    ByteReader in(m.bytes);
    if (!p.joined) {
        if (m.type != MessageType::kHello) return fail("did not say which rank it is");
        const auto joined = join(p, m.bytes);
        if (!joined) (void)p.connection.post(MessageType::kRefused, joined.error());
        return joined;
    }
    switch (m.type) {
        case MessageType::kBeat: return {};
        case MessageType::kReply:
            if (p.replies.size() >= kMaxQueue) return fail("sent too many replies");
            if (in_session_) p.replies.push_back(m.bytes);
            break;
        case MessageType::kStepDone: {
            const auto number = in.get<uint64_t>();
            PB_CHECK(in.done("the end of a step"));
            if (number > steps_) return fail("has done a step that is still to come");
            p.last_step = number;
            uint64_t done = steps_;
            for (const auto& other : peers_)
                if (other->joined) done = std::min(done, other->last_step);
            step_starts_.erase(step_starts_.begin(), step_starts_.upper_bound(done));
            break;
        }
        case MessageType::kFailed:
            if (in_session_) suspect(p, kReported, kGrace, ": " + m.bytes);
            break;
        case MessageType::kEnded: p.ended = true; break;
        case MessageType::kStoreSet: {
            const std::string key = in.text(), value = in.text();
            PB_CHECK(in.done("what it stores"));
            if (key.size() > kMaxKey || value.size() > kMaxValue || values_.size() >= kMaxValues)
                return fail("stores too much");
            if (in_session_) store(key, value);
            break;
        }
        case MessageType::kStoreGet: {
            const auto number = in.get<uint64_t>();
            const std::string key = in.text();
            PB_CHECK(in.done("what it asks of the store"));
            if (key.size() > kMaxKey || p.questions.size() >= kMaxQueue) return fail("asks too much of the store");
            const auto at = values_.find(key);
            if (!in_session_) answer(p, number, nullptr);
            else if (at != values_.end()) answer(p, number, &at->second);
            else p.questions.push_back({number, key});
            break;
        }
        default: return fail("sent a message that is rank 0's to send");
    }
    changed_.notify_all();
    return {};
}

Result<> Hub::join(Peer& p, std::string_view hello) {
    PB_TRY(const Hello h, read_hello(hello));
    if (h.job != job_) return fail("this is another job's rank 0 ('" + job_ + "', not '" + h.job + "')");
    if (h.size != size_)
        return fail("there are " + std::to_string(size_) + " ranks here, not " + std::to_string(h.size));
    if (h.rank == 0 || h.rank >= size_) return fail("there is no rank " + std::to_string(h.rank) + " to join");
    for (const auto& other : peers_)
        if (other->joined && other->info.rank == h.rank)
            return fail("rank " + std::to_string(h.rank) + " is there already");
    p.connection.take_at_most(kMaxMessage);
    p.info = {h.rank, h.pid, h.host};
    p.joined = true;
    joined_ += 1;
    changed_.notify_all();
    return {};
}

void Hub::answer(Peer& p, uint64_t number, const std::string* value) {
    ByteWriter out;
    out.put(number);
    out.put(static_cast<uint8_t>(value != nullptr));
    out.put(value ? std::string_view(*value) : std::string_view());
    (void)p.connection.post(MessageType::kStoreValue, out.bytes());
}

void Hub::look_for_the_dead(uint64_t now) {
    for (const auto& p : peers_) {
        int status = 0;
        if (!p->child || waitpid(p->child, &status, WNOHANG) != p->child) continue;
        p->child = 0;
        if (stopping_ || (suspicion_ && suspicion_->weight >= kEnded)) continue;
        // Its last message says more than its exit status.
        const bool reported = suspicion_ && suspicion_->weight == kReported && WIFEXITED(status);
        if (!reported) suspect(*p, kEnded, 0, how_it_ended(status));
        else suspicion_->decide_ns = now, suspicion_->passes = false;
    }
}

void Hub::look_for_the_hung(uint64_t now) {
    for (const auto& p : peers_) {
        if (!p->joined || p->closed) continue;
        if (p->heard_ns + deadlines_.heartbeat < now)
            return declare(text_of(p->info) + " hangs: no sign of life for " + seconds(now - p->heard_ns),
                           Lasts::kForGood);
        if (!step_starts_.empty() && p->last_step < step_starts_.begin()->first &&
            step_starts_.begin()->second + deadlines_.step < now)
            return declare(text_of(p->info) + " hangs: it computes on a step since " +
                           seconds(now - step_starts_.begin()->second), Lasts::kForGood);
    }
}

// A rank that loses another one fails too: the cause is decided when all ranks had time to report.
void Hub::suspect(Peer& p, int weight, uint64_t grace, const std::string& what) {
    const uint64_t decide_ns = clock_.now_ns() + grace;
    const std::string text = text_of(p.info) + (what.starts_with(":") ? "" : " ") + what;
    const bool passes = weight == kReported;
    if (!suspicion_) suspicion_ = {weight, decide_ns, text, passes};
    else if (weight > suspicion_->weight)
        suspicion_ = {weight, std::min(decide_ns, suspicion_->decide_ns), text, passes};
}

void Hub::decide(uint64_t now) {
    if (!suspicion_ || now < suspicion_->decide_ns) return;
    declare(suspicion_->text, suspicion_->passes ? Lasts::kForTheSession : Lasts::kForGood);
}

// The session fails with the first failure; a lasting one may still follow it.
void Hub::declare(const std::string& failure, Lasts lasts) {
    if (!failure_.empty() && (failure_lasts_ == Lasts::kForGood || lasts == Lasts::kForTheSession)) return;
    const bool is_first = failure_.empty();
    if (is_first) (void)post_to_all(MessageType::kEnd, failure);
    if (is_first || !in_session_) failure_ = failure;
    failure_lasts_ = lasts;
    changed_.notify_all();
    if (is_first && on_failure_) on_failure_();
}

}  // namespace patchbay::parallel
