// The side of a rank that is not rank 0: its messages from and to rank 0. Its own thread listens, so that
// rank 0 gets heartbeats while it computes, and so that it learns at once that the session is over or rank 0 is gone.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "parallel/connection.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/hello.hpp"

namespace patchbay::parallel {

class Spoke {
  public:
    // if_stuck: called if rank 0 is gone, and the spoke is still there a few seconds later.
    Spoke(Socket, const Hello&, const Deadlines&, std::function<void()> if_stuck);
    ~Spoke();

    Result<Message> next(); // the next message from rank 0, in order; fails when rank 0 is gone
    Result<> post(MessageType, std::string_view bytes);
    Result<> check() const; // that the session is not over
    const std::string& address() const { return address_; } // of this process, as the other ranks reach it

    // During a session: called by the spoke's thread when a step is given up, and last when the session ends, or rank 0
    // is gone. It ends what waits for other ranks.
    void watch(std::function<void()>);

    // The store.
    Result<> set(const std::string& key, std::string_view value);
    Result<std::string> get(const std::string& key);

  private:
    void listen();
    void take(Message);                  // mutex held
    void lose(Failure why);             // mutex held
    void end_session();                  // mutex held

    const Deadlines deadlines_;
    const std::function<void()> if_stuck_;
    const RealClock clock_;
    const std::string address_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Connection connection_;
    Socket wake_;
    std::deque<Message> inbox_;
    uint64_t questions_ = 0;                                     // sent to the store
    std::map<uint64_t, std::optional<std::string>> answers_;
    bool ended_ = false, stopping_ = false;
    std::optional<Failure> lost_; // why rank 0 is gone
    std::function<void()> disconnect_;
    std::thread thread_;
};

}  // namespace patchbay::parallel
