// HTTP/1.1 over TCP or a Unix socket: connections with keep-alive, pipelining, limits and deadlines; what to answer is
// the handler's. Each connection's work runs on its strand, on one of a few threads. Used by Server and Admin.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "serve/http_message.hpp"

namespace patchbay::serve {

struct HttpOptions {
    std::string host = "127.0.0.1"; // an address, or a name of which an address of IPv4 is preferred
    uint16_t port = 8000;           // 0: any free one
    int listener = -1;              // a TCP socket that listens already, in place of host and port; −1: none
    std::string socket;             // path of a Unix socket, in place of host and port; for this user alone
    uint32_t threads = 2;
    uint32_t max_connections = 4096;
    uint64_t max_body_bytes = 8u << 20;
    uint32_t max_header_bytes = 16u << 10;
    std::vector<std::string> allowed_origins; // of pages in browsers: see cors_headers()
    uint32_t keep_alive_seconds = 75; // that a connection may be idle between two requests
    uint32_t read_seconds = 30;       // from a request's first byte to its last
    uint32_t write_seconds = 60;      // that a client may take nothing of what is sent to it
    // Whether a request's body is to be read, by all that comes before it. If not, the handler gets the request without
    // one, which it refuses, and the connection ends with the answer. [strand] Empty: all are read.
    std::function<bool(const HttpRequest&)> takes;
    // Of what is answered without a handler: connections, too_large, malformed. [any thread] May be empty.
    std::function<void(const char* reason)> on_rejection;
    // What a client gets to read where a fault ends the process before any of the answer was sent. [strand]
    // Empty: the usual words.
    std::function<std::string(const HttpRequest&)> if_lost;
};

// One request and its answer. All functions: any thread, unless it says otherwise; the callbacks come on the
// connection's strand, one at a time.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual const HttpRequest& request() const = 0;
    // The whole answer; the exchange ends with it. After begin_stream() nothing happens.
    virtual void respond(HttpResponse) = 0;
    // An answer in parts. [strand]
    virtual void begin_stream(HttpResponse head) = 0;
    virtual void write(std::string_view part) = 0;
    virtual void end_stream() = 0;
    // What was written before is not sent yet: writing on would only pile up. on_sent comes when it is. [strand]
    virtual bool busy() const = 0;
    // gone: the client has closed its side, or takes nothing any more; nothing can be answered then. Both are dropped
    // when the exchange ends. [strand]
    virtual void set_callbacks(std::function<void()> on_sent, std::function<void()> gone) = 0;
    virtual void post(std::function<void()>) = 0;    // to the strand
    // To a thread for what takes long; dropped where the exchange ends before its turn, since the client has gone.
    virtual void offload(std::function<void()>) = 0;
};

class HttpServer {
  public:
    using Handler = std::function<void(const std::shared_ptr<Exchange>&)>; // [strand]

    // Clients may connect, and wait.
    static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions&, Handler);
    void run();  // calls the handler from now on, on threads of its own; once
    ~HttpServer(); // stop()
    uint16_t port() const; // 0: of a Unix socket
    const std::string& address() const; // on which it listens; empty: likewise
    size_t connections() const;
    size_t exchanges() const; // under way
    // Connections go on, and close after what they do now. New ones are refused, also by others who have the listener
    // that was given; after stop() alone they wait for those.
    void stop_listening();
    void wait_until_closed(); // all connections are, or it was stopped
    void stop();              // closes all

  private:
    struct Core;
    explicit HttpServer(std::unique_ptr<Core>);
    std::unique_ptr<Core> core_;
};

}  // namespace patchbay::serve
