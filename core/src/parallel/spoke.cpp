#include "parallel/spoke.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/refusals.hpp"
#include "parallel/address.hpp"
#include "parallel/bytes.hpp"

namespace patchbay::parallel {

constexpr uint64_t kStuck = 2'000 * kMillisecond; // after rank 0 is lost

static Failure over() { return unavailable("the session is over"); }
static Failure of_rank_0(const std::string& fault) { return unavailable("rank 0's " + fault); }

Spoke::Spoke(Socket socket, const Hello& hello, const Deadlines& deadlines, std::function<void()> if_stuck)
    : deadlines_(deadlines),
      if_stuck_(std::move(if_stuck)),
      address_(local_address(socket)),
      connection_(std::move(socket)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    (void)connection_.post(MessageType::kHello, bytes_of(hello)); // a fault shows at the next read
    thread_ = std::thread([this] { listen(); });
}

Spoke::~Spoke() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        const uint64_t one = 1;
        (void)!write(wake_.get(), &one, sizeof one);
    }
    thread_.join();
}

void Spoke::listen() {
    std::unique_lock lock(mutex_);
    uint64_t heard_ns = clock_.now_ns(), last_round_ns = heard_ns, beat_ns = 0, lost_ns = 0;
    while (!stopping_) {
        pollfd waits[] = {{wake_.get(), POLLIN, 0},
                          {lost_ ? -1 : connection_.fd(),
                           static_cast<short>(POLLIN | (connection_.has_backlog() ? POLLOUT : 0)), 0}};
        lock.unlock();
        poll(waits, 2, static_cast<int>(deadlines_.beat() / kMillisecond));
        uint64_t ignored;
        (void)!read(wake_.get(), &ignored, sizeof ignored);
        lock.lock();
        const uint64_t now = clock_.now_ns();
        if (lost_) {
            if (lost_ns == 0) lost_ns = now;
            if (now - lost_ns > kStuck && if_stuck_) if_stuck_();
            continue;
        }
        // A process that was stopped itself cannot know how long rank 0 was silent.
        if (now - last_round_ns > deadlines_.heartbeat / 2) heard_ns = now;
        last_round_ns = now;
        std::vector<Message> arrived;
        Result<> heard = connection_.receive(arrived);
        if (!arrived.empty()) heard_ns = now;
        for (Message& m : arrived) take(std::move(m));
        if (heard) heard = connection_.flush();
        if (heard && now - beat_ns >= deadlines_.beat()) {
            beat_ns = now;
            heard = connection_.post(MessageType::kBeat);
        }
        if (!heard) lose(fail(StatusCode::kUnavailable, "rank 0 " + heard.error()));
        else if (now - heard_ns > deadlines_.heartbeat)
            lose(unavailable("rank 0 hangs: no sign of life for more than " + seconds(deadlines_.heartbeat)));
    }
}

void Spoke::take(Message m) {
    switch (m.type) {
        case MessageType::kBeat: return;
        case MessageType::kRefused: {
            ByteReader in(m.bytes);
            Failure why = in.failure();
            if (const auto done = in.done("refusal of this rank"); !done) return lose(of_rank_0(done.error()));
            return lose(prefixed("rank 0 refuses this rank", std::move(why)));
        }
        case MessageType::kStoreValue: {
            ByteReader in(m.bytes);
            const auto number = in.get<uint64_t>();
            const bool found = in.get<uint8_t>() != 0;
            std::string value = in.text();
            if (const auto done = in.done("an answer of the store"); !done) return lose(of_rank_0(done.error()));
            answers_[number] = found ? std::optional(std::move(value)) : std::nullopt;
            break;
        }
        case MessageType::kBegin:
            ended_ = false;
            answers_.clear();
            inbox_.push_back(std::move(m));
            break;
        case MessageType::kReconnect: // its own turn comes when the step has ended, which this brings about
            if (disconnect_) disconnect_();
            inbox_.push_back(std::move(m));
            break;
        case MessageType::kEnd:
        case MessageType::kQuit:
            end_session();
            inbox_.push_back(std::move(m));
            break;
        default: inbox_.push_back(std::move(m));
    }
    changed_.notify_all();
}

void Spoke::end_session() {
    ended_ = true;
    if (disconnect_) std::exchange(disconnect_, nullptr)();
    changed_.notify_all();
}

void Spoke::lose(Failure why) {
    if (lost_) return;
    lost_ = std::move(why);
    connection_.close();
    end_session();
}

Result<Message> Spoke::next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !inbox_.empty() || lost_; });
    if (inbox_.empty()) return *lost_;
    Message out = std::move(inbox_.front());
    inbox_.pop_front();
    return out;
}

Result<> Spoke::post(MessageType type, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    if (lost_) return *lost_;
    if (const auto posted = connection_.post(type, bytes); !posted)
        return fail(posted.code(), "rank 0 " + posted.error());
    const uint64_t one = 1;
    if (connection_.has_backlog()) (void)!write(wake_.get(), &one, sizeof one);
    return {};
}

Result<> Spoke::check() const {
    const std::lock_guard lock(mutex_);
    if (!ended_) return {};
    return lost_ ? *lost_ : over();
}

void Spoke::watch(std::function<void()> disconnect) {
    const std::lock_guard lock(mutex_);
    if (ended_ && disconnect) disconnect();
    else disconnect_ = std::move(disconnect);
}

Result<> Spoke::set(const std::string& key, std::string_view value) {
    ByteWriter out;
    out.put(std::string_view(key));
    out.put(value);
    return post(MessageType::kStoreSet, out.bytes());
}

Result<std::string> Spoke::get(const std::string& key) {
    uint64_t number;
    {
        const std::lock_guard lock(mutex_);
        number = ++questions_;
    }
    ByteWriter out;
    out.put(number);
    out.put(std::string_view(key));
    PB_CHECK(post(MessageType::kStoreGet, out.bytes()));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || answers_.contains(number); });
    const auto at = answers_.find(number);
    if (at == answers_.end()) return lost_ ? *lost_ : over();
    std::optional<std::string> value = std::move(at->second);
    answers_.erase(at);
    if (!value) return unavailable("the store is closed");
    return *std::move(value);
}

}  // namespace patchbay::parallel
