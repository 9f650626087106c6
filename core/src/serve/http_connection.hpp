// One connection of the HTTP server. Internal: includes Boost.Asio and Beast, so that few files do.
#pragma once
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "serve/http_server.hpp"
#include "serve/lost_answers.hpp"

namespace patchbay::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

class Connection;

// What connections share.
struct ConnectionSet {
    static constexpr uint32_t kTicksPerSecond = 4;

    const HttpOptions options;
    const HttpServer::Handler handler;
    asio::thread_pool workers{2};
    std::atomic<uint64_t> tick = 1; // advances kTicksPerSecond times a second
    std::atomic<bool> closing = false; // answers are the last ones of their connections
    std::atomic<bool> stopped = false; // no connection is to begin any more
    std::atomic<size_t> exchanges = 0;
    std::mutex mutex;
    std::condition_variable closed; // one of `open` has gone
    std::unordered_set<Connection*> open; // under the mutex

    ConnectionSet(HttpOptions o, HttpServer::Handler h) : options(std::move(o)), handler(std::move(h)) {}
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    // Of TCP or a Unix socket.
    using Protocol = asio::generic::stream_protocol;
    using Socket = asio::basic_stream_socket<Protocol, asio::strand<asio::io_context::executor_type>>;

    Connection(Socket, std::shared_ptr<ConnectionSet>);
    ~Connection();
    void start();        // any thread, once
    void close_later();  // any thread: now
    bool overdue(uint64_t tick) const { return deadline_ != 0 && deadline_ <= tick; }
    void close_if_idle(); // any thread

  private:
    friend class LiveExchange;
    using Parser = http::request_parser<http::string_body>;

    void read();
    void on_read(const boost::system::error_code&, size_t bytes);
    void parse();
    void begin_exchange();
    void refuse(unsigned status, const std::string& text); // what is no request that can be answered
    void send(std::string_view bytes);
    void write_more();
    void on_written(const boost::system::error_code&, size_t bytes);
    void end_exchange();
    void next();
    void peer_gone();
    void finish_closing();
    void close();
    void set_deadline(uint32_t seconds); // 0: none
    void note_answer();                  // its state, for last words
    void wait_for_request();

    Socket socket_;
    LostAnswer answer_{socket_.native_handle()};
    const std::shared_ptr<ConnectionSet> set_;
    beast::flat_buffer buffer_; // of what was read and not parsed
    std::optional<Parser> parser_;
    bool parsing_ = false, continue_sent_ = false; // a request has begun
    bool reading_ = false, eof_ = false, closed_ = false;
    bool keep_alive_ = true, http_1_1_ = true, head_only_ = false;
    bool discarding_ = false; // the answer was the last one: what comes is thrown away until the client closes
    std::string sending_, pending_; // in an async_write_some; to be sent after it
    size_t sent_ = 0;               // of sending_
    bool writing_ = false;
    std::shared_ptr<class LiveExchange> exchange_;
    std::atomic<uint64_t> deadline_ = 0; // a tick; 0: none
};

}  // namespace patchbay::serve
