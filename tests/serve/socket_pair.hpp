// Two sockets that are connected: one of them a server's, the other one a client's that a test reads.
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/strand.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "serve/sender.hpp"

namespace patchbay::serve::testing {

class SocketPair {
  public:
    SocketPair() {
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
            throw std::runtime_error("no pair of sockets");
        server.assign(StreamProtocol(AF_UNIX, 0), ends[0]);
        client_ = ends[1];
    }
    ~SocketPair() { close_client(); }
    SocketPair(const SocketPair&) = delete;
    SocketPair& operator=(const SocketPair&) = delete;

    void close_client() {
        if (client_ >= 0) close(client_);
        client_ = -1;
    }
    void work() { // all that can be done now
        io.restart();
        while (io.poll() > 0) {}
    }
    std::string received() { // so far
        std::string out;
        std::array<char, 65536> part;
        for (ssize_t n = 0; (n = recv(client_, part.data(), part.size(), MSG_DONTWAIT)) > 0;)
            out.append(part.data(), static_cast<size_t>(n));
        return out;
    }

    void send(std::string_view bytes) { // by the client; they must fit
        if (::send(client_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) != ssize_t(bytes.size()))
            throw std::runtime_error("the socket takes no more");
    }

    boost::asio::io_context io;
    StreamSocket server{boost::asio::make_strand(io)};

  private:
    int client_ = -1;
};

}  // namespace patchbay::serve::testing
