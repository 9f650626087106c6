// All connections of rank 0: to the ranks that joined, and to those that may join. One thread at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "parallel/connection.hpp"
#include "parallel/hello.hpp"

namespace patchbay::parallel {

// One connection of rank 0: to another rank, or to a process that has not said yet which rank it is.
struct Peer {
    explicit Peer(Socket socket) : connection(std::move(socket)) {}

    Connection connection;
    RankInfo info;
    int child = 0;              // 0, or a child to wait for
    Socket process;             // becomes readable when the child ends
    bool joined = false, closed = false;
    uint64_t since_ns = 0;      // when it connected
    uint64_t heard_ns = 0;      // time of its last message
    uint64_t last_step = 0;     // the last step that it finished
    bool ended = false;         // has finished the session
    std::deque<std::string> replies;
    struct Question {           // a read of the store that waits for its value
        uint64_t number;
        std::string key;
    };
    std::vector<Question> questions;
};

struct Member { // a rank that is expected to join
    Socket socket;
    uint32_t rank = 0;
    int child = 0; // a process started here, which the hub waits for and may kill; 0: none
};

class Peers {
  public:
    Peers(uint32_t size, std::vector<Member>);

    uint32_t size() const { return size_; } // number of ranks, with rank 0
    const std::vector<std::unique_ptr<Peer>>& all() const { return all_; } // in order of arrival
    Peer& add(Socket);
    void join(Peer&, RankInfo);
    bool has_joined(uint32_t rank) const;
    bool all_joined() const { return joined_ + 1 == size_; }
    void erase_gone(); // those that are closed, and those that no rank is left for

    std::vector<RankInfo> ranks() const; // that joined, without rank 0
    std::string missing() const;         // "1, 2"
    std::string address() const;         // of this process, as the other ranks reach it

    Result<> post_to_ranks(MessageType, std::string_view bytes); // to all that joined
    bool have_backlog() const;

  private:
    const uint32_t size_;
    std::vector<std::unique_ptr<Peer>> all_;
    uint32_t joined_ = 0;
};

}  // namespace patchbay::parallel
