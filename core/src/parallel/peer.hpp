// What the hub knows of one other rank. For hub.cpp and hub_thread.cpp.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "parallel/connection.hpp"
#include "parallel/hub.hpp"

namespace patchbay::parallel {

struct Hub::Peer {
    explicit Peer(Socket socket) : connection(std::move(socket)) {}

    Connection connection;
    RankInfo info;
    int child = 0;              // not yet waited for
    Socket process;             // becomes readable when the child ends
    bool joined = false, closed = false;
    uint64_t since_ns = 0;      // when it connected
    uint64_t heard_ns = 0;      // when it last said something
    uint64_t last_step = 0;     // that it has done
    bool ended = false;         // is through with the session
    std::deque<std::string> replies;
    struct Question {           // of the store, not yet answered
        uint64_t number;
        std::string key;
    };
    std::vector<Question> questions;
};

}  // namespace patchbay::parallel
