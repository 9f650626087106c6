// One connection of rank 0: to another rank, or to a process that has not said yet which rank it is.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "parallel/connection.hpp"
#include "parallel/hello.hpp"

namespace patchbay::parallel {

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

}  // namespace patchbay::parallel
