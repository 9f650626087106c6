// How ranks join rank 0: accepts connections, checks their hello, and closes those that do not send one, so that a rank
// always finds a place. Part of HubThread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "parallel/peers.hpp"

namespace patchbay::parallel {

class Joining {
  public:
    using Hear = std::function<void(Peer&)>; // reads what a connection has sent

    // peers: outlive it. listener: may be empty. hello_ns: from connecting to saying hello.
    Joining(std::string job, Peers& peers, Socket listener, uint64_t hello_ns)
        : job_(std::move(job)), peers_(peers), listener_(std::move(listener)), hello_ns_(hello_ns) {}

    // To wait for. -1: there is none, or all have joined, or there was nothing to accept with: what cannot be accepted
    // would stay readable.
    int listener() const { return starved_ ? -1 : listener_.get(); }
    void accept_all(uint64_t now, const Hear&);
    void drop_silent(uint64_t now);
    Result<> join(Peer&, std::string_view hello); // or why it may not

  private:
    static bool is_stranger(const Peer&); // is connected, and has not sent its hello
    void drop_oldest(const Hear&);        // if there are too many
    void note_failure(int error);         // of accept()

    const std::string job_;
    Peers& peers_;
    Socket listener_;
    const uint64_t hello_ns_;
    bool starved_ = false; // the latest accept() had no descriptor or memory
    bool said_ = false;
};

}  // namespace patchbay::parallel
