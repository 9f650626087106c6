// The hub's own thread: watches all sockets, receives from the ranks, and finds out which rank died or hangs. Used by
// Hub.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "parallel/hub_state.hpp"
#include "parallel/joining.hpp"

namespace patchbay::parallel {

class HubThread {
  public:
    // The state outlives it.
    HubThread(HubState&, std::string job, Socket listener);
    ~HubThread(); // sends quit to all; kills children that do not end

  private:
    void run();
    void wait_for_events(); // without the mutex

    // ---- mutex held ----
    void read_all(uint64_t now);
    void send_heartbeats(uint64_t now);
    void hear(Peer&, uint64_t now);
    Result<> take(Peer&, const Message&);
    Result<> take_fault(Peer&, std::string_view message);
    Result<> join(Peer&, const Message&);
    void look_for_the_dead(uint64_t now);
    void look_for_the_hung(uint64_t now);
    void suspect(const Peer&, RankFailure::Sign, uint64_t grace, Failure);
    void decide(uint64_t now);
    bool all_have_quit(uint64_t now);

    HubState& s_;
    Joining joining_;
    bool stopping_ = false;
    uint64_t last_round_ns_ = 0, beat_ns_ = 0;
    uint64_t kill_ns_ = 0; // when children that have not ended are killed; 0: they were not asked to end
    std::thread thread_;
};

}  // namespace patchbay::parallel
