// Bytes to the client of one connection, in the order in which they are given, one write at a time. Internal: includes
// Boost.Asio, so that few files do. Used by Connection and its exchanges.
#pragma once
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace patchbay::serve {

using StreamProtocol = boost::asio::generic::stream_protocol; // TCP or a Unix socket
using StreamSocket =
    boost::asio::basic_stream_socket<StreamProtocol, boost::asio::strand<boost::asio::io_context::executor_type>>;

class Sender { // [strand of the socket]
  public:
    struct Owner {
        std::function<std::shared_ptr<void>()> hold; // keeps Sender and socket while a write is under way
        std::function<void()> on_sending; // a write begins; or it did not, since the process ends
        std::function<void()> on_sent;    // all that was given
        std::function<void()> on_failed;  // the client takes nothing any more
    };

    Sender(StreamSocket& socket, Owner owner) : socket_(socket), owner_(std::move(owner)) {}

    void send(std::string_view bytes); // nothing where the socket is closed
    bool is_sending() const { return writing_; }
    bool is_open() const { return socket_.is_open(); }
    StreamSocket::executor_type executor() { return socket_.get_executor(); }

  private:
    void write_more();
    void on_written(const boost::system::error_code&, size_t bytes);

    StreamSocket& socket_;
    const Owner owner_;
    std::string sending_, pending_; // in an async_write_some; to be sent after it
    size_t sent_ = 0;               // of sending_
    bool writing_ = false;
};

}  // namespace patchbay::serve
