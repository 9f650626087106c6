// Rank 0's side of the ranks: which ranks joined, messages to and from them, the store that they share, and which died
// or hang. Its own thread watches all sockets; calls come from the engine's thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "parallel/connection.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/hello.hpp"

namespace patchbay::parallel {

struct Member { // a rank that is expected to join
    Socket socket;
    uint32_t rank = 0;
    int child = 0; // a process started here, which the hub waits for and may kill; 0: none
};

class Hub {
  public:
    // listener: accepts connections of ranks that are not members yet; a hello gives the rank. May be empty.
    Hub(std::string job, uint32_t size, std::vector<Member>, Socket listener, const Deadlines&);
    ~Hub(); // sends quit to all; kills children that do not end

    uint32_t size() const { return size_; }
    Result<> wait_until_joined();
    std::vector<RankInfo> ranks() const; // without rank 0
    std::string address() const;         // of this process, as the other ranks reach it

    // A session is the ranks' work for one engine.
    Result<> begin(std::string_view what);
    // on_failure is called once, by the hub's thread, when a rank fails, or at once if one has failed; null: no call.
    void watch(std::function<void()> on_failure);
    Result<> broadcast(MessageType, std::string_view bytes);
    Result<std::vector<std::string>> gather(); // a reply of each rank, by rank from 1 on
    Result<uint64_t> step(std::string_view batch); // returns bytes sent to each rank
    void end(const std::string& why); // waits until all ranks have finished the session

    // The store.
    Result<> set(const std::string& key, std::string value);
    Result<std::string> get(const std::string& key);
    Result<std::string> take(const std::string& key); // the same, and it is gone

    // Why the ranks cannot continue; empty: they can. explain() waits for the cause of a fault of this rank.
    std::string failure() const;
    std::string explain(const std::string& own_fault);

  private:
    struct Peer;
    struct Suspicion { // the probable cause of a failure, until it is certain
        int weight = 0;
        uint64_t decide_ns = 0;
        std::string text;
        bool passes = false; // the fault ends only the session: the rank is well, and cannot do what was requested
    };

    // ---- the hub's thread, mutex held ----
    void serve();
    void wait_for_events();
    void accept_all(uint64_t now);
    bool is_stranger(const Peer&) const; // is connected, and has not sent its hello
    void drop_oldest_stranger(uint64_t now); // if there are too many
    void drop_silent_strangers(uint64_t now);
    static void drop(Peer&);
    void hear(Peer&, uint64_t now);
    Result<> take(Peer&, const Message&);
    Result<> join(Peer&, std::string_view hello);
    void answer(Peer&, uint64_t number, const std::string* value);
    void look_for_the_dead(uint64_t now);
    void look_for_the_hung(uint64_t now);
    void suspect(Peer&, int weight, uint64_t grace, const std::string& what);
    void decide(uint64_t now);
    enum class Lasts { kForTheSession, kForGood };
    void declare(const std::string& failure, Lasts);

    // ---- any thread, mutex held ----
    Result<> wait_for(std::unique_lock<std::mutex>&, const std::string& key); // until it is stored
    void store(const std::string& key, std::string value);
    Result<> post_to_all(MessageType, std::string_view bytes);
    bool all_joined() const { return joined_ + 1 == size_; }
    void wake() const;

    const std::string job_;
    const uint32_t size_;
    const Deadlines deadlines_;
    const RealClock clock_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Peer>> peers_;
    Socket listener_, wake_;
    uint32_t joined_ = 0;
    bool stopping_ = false, in_session_ = false;
    uint64_t steps_ = 0, last_round_ns_ = 0;
    std::map<uint64_t, uint64_t> step_starts_; // steps that some rank still computes: number, start time
    std::map<std::string, std::string> values_;
    std::optional<Suspicion> suspicion_;
    std::string failure_;
    Lasts failure_lasts_ = Lasts::kForGood;
    std::function<void()> on_failure_;
    std::thread thread_;
};

}  // namespace patchbay::parallel
