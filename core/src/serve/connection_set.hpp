// What the connections of an HTTP server share. Internal: includes Boost.Asio, so that few files do.
#pragma once
#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "serve/http_server.hpp"

namespace patchbay::serve {

class Connection;

struct ConnectionSet {
    const HttpOptions options;
    const HttpServer::Handler handler;
    boost::asio::thread_pool workers{2};
    std::atomic<uint64_t> tick = 1; // advances Deadline::kTicksPerSecond times a second
    std::atomic<bool> closing = false; // answers are the last ones of their connections
    std::atomic<bool> stopped = false; // no connection is to begin any more
    std::atomic<size_t> exchanges = 0;
    std::mutex mutex;
    std::condition_variable closed; // one of `open` has gone
    std::unordered_set<Connection*> open; // under the mutex

    ConnectionSet(HttpOptions o, HttpServer::Handler h) : options(std::move(o)), handler(std::move(h)) {}
};

}  // namespace patchbay::serve
