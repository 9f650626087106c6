#include "parallel/joining.hpp"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/refusals.hpp"
#include "parallel/address.hpp"

namespace patchbay::parallel {
namespace {

constexpr size_t kMaxStrangers = 64; // connections without a hello
constexpr size_t kMaxHello = 1024;   // bytes

void drop(Peer& p) {
    p.closed = true;
    p.connection.close();
}

}  // namespace

// A rank sends its hello as soon as it is connected, so it is read before the next one is accepted. The longest silent
// connection is closed first.
void Joining::accept_all(uint64_t now, const Hear& hear) {
    constexpr size_t kAtOnce = 256; // so that members are read, too
    starved_ = false;
    if (peers_.all_joined()) listener_.reset();
    for (size_t i = 0; i < kAtOnce && listener_.get() >= 0 && !peers_.all_joined(); ++i) {
        Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (socket.get() < 0) return note_failure(errno);
        send_at_once(socket.get());
        Peer& peer = peers_.add(std::move(socket));
        peer.connection.take_at_most(kMaxHello);
        peer.since_ns = now;
        hear(peer);
        drop_oldest(hear);
    }
}

void Joining::note_failure(int error) {
    starved_ = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
    if (starved_ && !std::exchange(said_, true))
        spdlog::warn("a rank cannot join yet: {} (is the limit of open files, `ulimit -n`, too low?)",
                     std::strerror(error));
}

bool Joining::is_stranger(const Peer& p) { return !p.joined && !p.child && !p.closed && p.since_ns > 0; }

void Joining::drop_oldest(const Hear& hear) {
    const auto stranger = [](const auto& p) { return is_stranger(*p); };
    const auto& all = peers_.all();
    if (static_cast<size_t>(std::count_if(all.begin(), all.end(), stranger)) <= kMaxStrangers) return;
    Peer& oldest = **std::find_if(all.begin(), all.end(), stranger); // they are in order of arrival
    hear(oldest);
    if (is_stranger(oldest)) drop(oldest);
}

void Joining::drop_silent(uint64_t now) {
    for (const auto& p : peers_.all())
        if (is_stranger(*p) && now >= p->since_ns + hello_ns_) drop(*p);
}

Result<> Joining::join(Peer& p, std::string_view hello) {
    PB_TRY(const Hello h, read_hello(hello));
    const uint32_t size = peers_.size();
    if (h.job != job_) return invalid("this is another job's rank 0 ('" + job_ + "', not '" + h.job + "')");
    if (h.size != size)
        return invalid("there are " + std::to_string(size) + " ranks here, not " + std::to_string(h.size));
    if (h.rank == 0 || h.rank >= size) return invalid("there is no rank " + std::to_string(h.rank) + " to join");
    if (peers_.has_joined(h.rank)) return invalid("rank " + std::to_string(h.rank) + " is there already");
    p.connection.take_at_most(kMaxMessage);
    peers_.join(p, {h.rank, h.pid, h.host});
    return {};
}

}  // namespace patchbay::parallel
