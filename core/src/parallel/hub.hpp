// Rank 0's side of the ranks, for the engine's thread: messages to and from them, the store that they share, and why
// they cannot continue. HubThread watches their sockets meanwhile.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "parallel/connection.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/hello.hpp"
#include "parallel/peers.hpp"

namespace patchbay::parallel {

struct HubState;
class HubThread;

class Hub {
  public:
    // listener: accepts connections of ranks that are not members yet; a hello gives the rank. May be empty.
    Hub(std::string job, uint32_t size, std::vector<Member>, Socket listener, const Deadlines&);
    ~Hub(); // sends quit to all; kills children that do not end

    uint32_t size() const;
    Result<> wait_until_joined();
    std::vector<RankInfo> ranks() const; // without rank 0
    std::string address() const;         // of this process, as the other ranks reach it

    // A session is the ranks' work for one engine.
    Result<> begin(std::string_view what);
    // on_failure is called when a rank fails, by the hub's thread, or at once if one has failed: in a step that may be
    // computed anew, and where the ranks cannot continue. null: no call.
    void watch(std::function<void()> on_failure);
    Result<> broadcast(MessageType, std::string_view bytes);
    // A reply of each rank, by rank from 1 on, to what it does now, for which it has a limit.
    enum class Doing { kLoads, kConnects };
    Result<std::vector<std::string>> gather(Doing = Doing::kLoads);
    enum class IfItFails { kEnds, kIsRedone }; // a step in which a rank fails
    Result<uint64_t> step(std::string_view batch, IfItFails); // returns bytes sent to each rank
    // Of the latest step, which is redone if it fails: waits until all ranks have finished it, or for the first fault.
    Result<> wait_for_step();
    // The ranks give it up and connect their devices anew, while this one does; then gather() has their replies. What
    // failed in it is the answer; none: no other rank reported a fault.
    Result<std::optional<Failure>> reconnect(std::string_view connection);
    void fail_session(const Failure&); // of this rank: the others learn that they cannot continue
    void end(const std::string& why); // waits until all ranks have finished the session

    // The store.
    Result<> set(const std::string& key, std::string value);
    Result<std::string> get(const std::string& key);
    Result<std::string> take(const std::string& key); // the same, and it is gone
    // The same of what a rank sets between two steps. One that takes longer for it than a step may take hangs.
    Result<std::string> take_from(const RankInfo&, const std::string& key);
    void forget(std::string_view prefix);             // all keys that begin so

    Result<> check() const; // that the ranks can continue
    // Why the ranks cannot continue. Waits for the cause of a fault of this rank, which is the answer if there is none.
    Failure explain(const Failure& own_fault);

  private:
    Result<> wait_for(std::unique_lock<std::mutex>&, const std::string& key); // until it is stored

    const std::unique_ptr<HubState> state_;
    const std::unique_ptr<HubThread> thread_; // ends before the state
};

}  // namespace patchbay::parallel
