#include "parallel/hub_thread.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/refusals.hpp"
#include "parallel/address.hpp"
#include "parallel/bytes.hpp"

namespace patchbay::parallel {
namespace {

constexpr uint64_t kGrace = 1000 * kMillisecond;     // in which a more likely cause may appear
constexpr uint64_t kQuitGrace = 2'000 * kMillisecond; // for children to end by themselves
constexpr size_t kMaxReplies = 4;                   // that wait to be gathered: a rank sends one at a time

using Lasts = RankFailure::Lasts;
using Sign = RankFailure::Sign;

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        return "was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    }
    return "exited with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

HubThread::HubThread(HubState& state, std::string job, Socket listener)
    : s_(state), joining_(std::move(job), state.peers, std::move(listener), state.deadlines.hello) {
    thread_ = std::thread([this] { run(); });
}

HubThread::~HubThread() {
    {
        const std::lock_guard lock(s_.mutex);
        (void)s_.peers.post_to_ranks(MessageType::kQuit, ""); // also after a failure
        stopping_ = true;
        s_.wake();
    }
    thread_.join();
}

void HubThread::run() {
    std::unique_lock lock(s_.mutex);
    last_round_ns_ = s_.clock.now_ns();
    for (;;) {
        lock.unlock();
        wait_for_events();
        lock.lock();
        const uint64_t now = s_.clock.now_ns();
        read_all(now);
        send_heartbeats(now);
        look_for_the_dead(now);
        if (!stopping_) {
            look_for_the_hung(now);
            decide(now);
        }
        s_.peers.erase_gone();
        if (stopping_ && all_have_quit(now)) return;
    }
}

void HubThread::wait_for_events() { // only this thread changes the list of peers
    std::vector<pollfd> waits = {{s_.wakes.get(), POLLIN, 0}};
    {
        const std::lock_guard lock(s_.mutex);
        if (joining_.listener() >= 0) waits.push_back({joining_.listener(), POLLIN, 0});
        for (const auto& p : s_.peers.all()) {
            const auto events = static_cast<short>(POLLIN | (p->connection.has_backlog() ? POLLOUT : 0));
            if (!p->closed) waits.push_back({p->connection.fd(), events, 0});
            if (p->child) waits.push_back({p->process.get(), POLLIN, 0});
        }
    }
    poll(waits.data(), waits.size(), static_cast<int>(std::min(s_.deadlines.beat(), kGrace / 3) / kMillisecond));
    uint64_t ignored;
    (void)!read(s_.wakes.get(), &ignored, sizeof ignored);
}

void HubThread::read_all(uint64_t now) {
    const auto& peers = s_.peers.all();
    // A process that was stopped itself cannot know which ranks were silent meanwhile.
    if (now - last_round_ns_ > s_.deadlines.heartbeat / 2)
        for (const auto& p : peers) p->heard_ns = now;
    last_round_ns_ = now;
    joining_.accept_all(now, [&](Peer& p) { hear(p, now); });
    joining_.drop_silent(now);
    for (size_t i = 0; i < peers.size(); ++i)
        if (!peers[i]->closed) hear(*peers[i], now);
}

void HubThread::send_heartbeats(uint64_t now) {
    if (now - beat_ns_ < s_.deadlines.beat()) return;
    beat_ns_ = now;
    for (const auto& p : s_.peers.all())
        if (p->joined && !p->closed) (void)p->connection.post(MessageType::kBeat);
}

void HubThread::hear(Peer& p, uint64_t now) {
    std::vector<Message> arrived;
    Result<> heard = p.connection.receive(arrived);
    if (!arrived.empty()) p.heard_ns = now;
    for (const Message& m : arrived)
        if (const auto taken = take(p, m); !taken) {
            heard = taken.failure();
            break;
        }
    if (heard) heard = p.connection.flush();
    if (heard) return;
    p.closed = true;
    p.connection.close();
    if (!stopping_ && (p.joined || p.child)) // no caller's fault, whatever the code
        suspect(p, Sign::kClosed, p.child ? kGrace : 0, fail(StatusCode::kFailed, heard.error()));
}

Result<> HubThread::take(Peer& p, const Message& m) {
    if (!p.joined) return join(p, m);
    switch (m.type) {
        case MessageType::kBeat: return {};
        case MessageType::kReply:
            if (p.replies.size() >= kMaxReplies) return invalid("sent too many replies");
            if (s_.in_session) p.replies.push_back(m.bytes);
            break;
        case MessageType::kStepDone: {
            ByteReader in(m.bytes);
            const auto number = in.get<uint64_t>();
            PB_CHECK(in.done("the end of a step"));
            PB_CHECK(s_.steps.finished(p, number, s_.peers));
            break;
        }
        case MessageType::kStepFailed: PB_CHECK(take_fault(p, m.bytes)); break;
        case MessageType::kFailed: {
            ByteReader in(m.bytes);
            const Failure why = in.failure();
            PB_CHECK(in.done("why it cannot continue"));
            if (s_.in_session) suspect(p, Sign::kReported, kGrace, why);
            break;
        }
        case MessageType::kEnded: p.ended = true; break;
        case MessageType::kStoreSet: PB_CHECK(s_.store.on_set(m.bytes, s_.in_session)); break;
        case MessageType::kStoreGet: PB_CHECK(s_.store.on_get(p, m.bytes, s_.in_session)); break;
        default: return invalid("sent a message that is rank 0's to send");
    }
    s_.changed.notify_all();
    return {};
}

Result<> HubThread::take_fault(Peer& p, std::string_view message) {
    ByteReader in(message);
    const auto number = in.get<uint64_t>();
    const Failure why = in.failure();
    PB_CHECK(in.done("the fault of a step"));
    PB_CHECK(s_.steps.finished(p, number, s_.peers));
    if (!s_.in_session) return {};
    if (!s_.trial.is_of(number)) suspect(p, Sign::kReported, kGrace, why);
    else if (s_.trial.fails(prefixed(text_of(p.info), why)) && s_.on_failure) s_.on_failure();
    return {};
}

Result<> HubThread::join(Peer& p, const Message& m) {
    if (m.type != MessageType::kHello) return invalid("did not say which rank it is");
    const auto joined = joining_.join(p, m.bytes);
    if (joined) {
        s_.changed.notify_all();
    } else {
        ByteWriter why;
        why.put(joined.failure());
        (void)p.connection.post(MessageType::kRefused, why.bytes());
    }
    return joined;
}

void HubThread::look_for_the_dead(uint64_t now) {
    for (const auto& p : s_.peers.all()) {
        int status = 0;
        if (!p->child || waitpid(p->child, &status, WNOHANG) == 0) continue; // < 0: someone else has waited for it
        p->child = 0;
        if (stopping_) continue;
        if (s_.failure.ended(WIFEXITED(status), now)) suspect(*p, Sign::kEnded, 0, fail(how_it_ended(status)));
    }
}

void HubThread::look_for_the_hung(uint64_t now) {
    for (const auto& p : s_.peers.all()) {
        if (!p->joined || p->closed) continue;
        if (p->heard_ns + s_.deadlines.heartbeat < now)
            return s_.declare(fail(text_of(p->info) + " hangs: no sign of life for " + seconds(now - p->heard_ns)),
                              Lasts::kForGood);
        if (const auto since = s_.steps.since(*p); since && *since + s_.deadlines.step < now)
            return s_.declare(
                fail(text_of(p->info) + " hangs: it has been computing a step for " + seconds(now - *since)),
                Lasts::kForGood);
    }
}

void HubThread::suspect(const Peer& p, Sign sign, uint64_t grace, Failure why) {
    why.text.insert(0, text_of(p.info) + (sign == Sign::kReported ? ": " : " "));
    s_.failure.suspect(sign, s_.clock.now_ns() + grace, std::move(why));
}

void HubThread::decide(uint64_t now) {
    if (const RankFailure::Cause* cause = s_.failure.due(now))
        s_.declare(cause->why, cause->passes ? Lasts::kForTheSession : Lasts::kForGood);
}

bool HubThread::all_have_quit(uint64_t now) {
    if (kill_ns_ == 0) kill_ns_ = now + (s_.failure.exists() ? 0 : kQuitGrace);
    const bool late = now >= kill_ns_;
    const auto has_quit = [&](const std::unique_ptr<Peer>& p) {
        if (p->child && late) kill(p->child, SIGKILL);
        return !p->child && (p->closed || late || !p->connection.has_backlog());
    };
    const auto& peers = s_.peers.all();
    return std::count_if(peers.begin(), peers.end(), has_quit) == static_cast<ptrdiff_t>(peers.size());
}

}  // namespace patchbay::parallel
