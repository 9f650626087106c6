#include "parallel/peers.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "parallel/address.hpp"

namespace patchbay::parallel {

Peers::Peers(uint32_t size, std::vector<Member> members) : size_(size) {
    for (Member& m : members) {
        Peer& peer = add(std::move(m.socket));
        peer.info = {m.rank, static_cast<uint32_t>(m.child), host_name()};
        peer.child = m.child;
        if (m.child) peer.process = Socket(static_cast<int>(syscall(SYS_pidfd_open, m.child, 0)));
    }
}

Peer& Peers::add(Socket socket) { return *all_.emplace_back(std::make_unique<Peer>(std::move(socket))); }

void Peers::join(Peer& p, RankInfo info) {
    p.info = std::move(info);
    p.joined = true;
    joined_ += 1;
}

bool Peers::has_joined(uint32_t rank) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& p) { return p->joined && p->info.rank == rank; });
}

void Peers::erase_gone() {
    std::erase_if(all_, [&](const auto& p) { return (p->closed || all_joined()) && !p->joined && !p->child; });
}

std::vector<RankInfo> Peers::ranks() const {
    std::vector<RankInfo> out;
    for (const auto& p : all_)
        if (p->joined) out.push_back(p->info);
    return out;
}

std::string Peers::missing() const {
    std::string out;
    for (uint32_t r = 1; r < size_; ++r)
        if (!has_joined(r)) out += (out.empty() ? "" : ", ") + std::to_string(r);
    return out;
}

std::string Peers::address() const {
    for (const auto& p : all_)
        if (p->joined) return local_address(Socket(dup(p->connection.fd())));
    return "127.0.0.1";
}

Result<> Peers::post_to_ranks(MessageType type, std::string_view bytes) {
    Result<> all;
    for (const auto& p : all_) {
        if (!p->joined || p->closed) continue;
        if (const auto posted = p->connection.post(type, bytes); !posted && all) // and on to the others
            all = fail(posted.code(), text_of(p->info) + " " + posted.error());
    }
    return all;
}

bool Peers::have_backlog() const {
    return std::any_of(all_.begin(), all_.end(),
                       [](const auto& p) { return p->joined && !p->closed && p->connection.has_backlog(); });
}

}  // namespace patchbay::parallel
