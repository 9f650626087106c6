#include "serve/http_server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <spdlog/spdlog.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "base/crash_report.hpp"
#include "base/refusals.hpp"
#include "serve/error_reply.hpp"
#include "serve/http_answer.hpp"
#include "serve/http_connection.hpp"
#include "serve/socket_file.hpp"

namespace patchbay::serve {
namespace {

// Not for the probes that a swap starts.
void keep_to_this_program(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

Failure cannot_listen(const std::string& where, const boost::system::error_code& error) {
    return fail(code_of_listen(error.value()), "cannot listen on " + where + ": " + error.message());
}

// Of the addresses of a name the first of IPv4: some systems give ::1 first for `localhost`, where most clients try
// 127.0.0.1.
asio::ip::tcp::endpoint chosen(const asio::ip::tcp::resolver::results_type& found) {
    for (const auto& one : found)
        if (one.endpoint().address().is_v4()) return one.endpoint();
    return found.begin()->endpoint();
}

}  // namespace

struct HttpServer::Core {
    Core(const HttpOptions& options, Handler handler)
        : set(std::make_shared<ConnectionSet>(options, std::move(handler))) {}

    using Acceptor = asio::basic_socket_acceptor<Connection::Protocol, asio::strand<asio::io_context::executor_type>>;

    Result<> listen() {
        if (!set->options.socket.empty()) return listen_on_file();
        return set->options.listener < 0 ? listen_on_tcp() : take_listener();
    }

    Result<> take_listener() {
        sockaddr_storage bound{};
        socklen_t size = sizeof bound;
        const int fd = set->options.listener;
        boost::system::error_code error;
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0)
            return invalid("the listener is not a socket: " + std::string(std::strerror(errno)));
        acceptor.assign(Connection::Protocol(bound.ss_family, IPPROTO_TCP), fd, error);
        if (error) return cannot_listen("the given socket", error);
        note_port();
        return {};
    }

    void note_port() {
        boost::asio::ip::tcp::endpoint bound;
        const auto local = acceptor.local_endpoint();
        std::memcpy(bound.data(), local.data(), std::min(local.size(), bound.capacity()));
        port = bound.port();
        address = bound.address().to_string();
    }

    Result<> listen_on_tcp() {
        boost::system::error_code error;
        const HttpOptions& o = set->options;
        const std::string where = o.host + ":" + std::to_string(o.port);
        asio::ip::tcp::resolver resolver(io);
        const auto found = resolver.resolve(o.host, std::to_string(o.port), asio::ip::tcp::resolver::passive, error);
        if (error || found.empty())
            return fail(StatusCode::kInvalid, "cannot listen on " + where + ": " + error.message());
        const asio::ip::tcp::endpoint endpoint = chosen(found);
        acceptor.open(endpoint.protocol(), error);
        if (!error) keep_to_this_program(acceptor.native_handle());
        if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
        if (!error) acceptor.bind(endpoint, error);
        if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
        if (error) return cannot_listen(where, error);
        note_port();
        return {};
    }

    Result<> listen_on_file() {
        const std::string& path = set->options.socket;
        const auto bind = [&]() -> Result<> {
            boost::system::error_code error;
            acceptor.open(asio::local::stream_protocol(), error);
            if (!error) keep_to_this_program(acceptor.native_handle());
            if (!error) acceptor.bind(asio::local::stream_protocol::endpoint(path), error);
            if (error) return cannot_listen(path, error);
            return {};
        };
        const auto listen = [&]() -> Result<> {
            boost::system::error_code error;
            acceptor.listen(asio::socket_base::max_listen_connections, error);
            if (error) return cannot_listen(path, error);
            return {};
        };
        PB_TRY(file, SocketFile::make(path, bind, listen));
        return {};
    }

    void accept() {
        acceptor.async_accept(asio::make_strand(io), [this](const boost::system::error_code& error,
                                                            Connection::Socket socket) {
            if (!acceptor.is_open()) return;
            if (error) { // no descriptor is free, most likely: at the next tick again
                accept_at_tick = true;
                return;
            }
            keep_to_this_program(socket.native_handle());
            size_t open = 0;
            {
                const std::lock_guard lock(set->mutex);
                open = set->open.size();
            }
            if (open < set->options.max_connections) std::make_shared<Connection>(std::move(socket), set)->start();
            else turn_away(socket);
            accept();
        });
    }

    void turn_away(Connection::Socket& socket) {
        if (set->options.on_rejection) set->options.on_rejection("connections");
        const HttpResponse reply =
            error_reply(fail(StatusCode::kUnavailable,
                             std::to_string(set->options.max_connections) + " connections are open, no more fit"));
        const std::string text = whole_answer(reply, Ending::kClose);
        boost::system::error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(text), ignored);
        socket.shutdown(Connection::Socket::shutdown_send, ignored);
    }

    template <class F>
    void each_connection(const F& f) {
        std::vector<std::shared_ptr<Connection>> all; // one may go, and lock the mutex, while f works on another
        {
            const std::lock_guard lock(set->mutex);
            for (Connection* c : set->open)
                if (auto held = c->weak_from_this().lock()) all.push_back(std::move(held));
        }
        for (const auto& c : all) f(*c);
    }

    // for_all: also in the processes that share the given listener, connections are no longer taken.
    void stop_listening(bool for_all) {
        set->closing = true;
        asio::post(strand, [this, for_all] {
            boost::system::error_code ignored;
            if (for_all && set->options.listener >= 0 && acceptor.is_open())
                ::shutdown(acceptor.native_handle(), SHUT_RDWR);
            acceptor.close(ignored);
            file.reset();
        });
        each_connection([](Connection& c) { c.close_if_idle(); });
    }

    void tick() {
        timer.expires_after(std::chrono::milliseconds(1000 / Deadline::kTicksPerSecond));
        timer.async_wait([this](const boost::system::error_code& error) {
            if (error || set->stopped) return;
            ++set->tick;
            each_connection([](Connection& c) {
                if (c.overdue()) c.close_later();
            });
            if (std::exchange(accept_at_tick, false) && acceptor.is_open()) accept();
            tick();
        });
    }

    void run() {
        const SignalStack stack;
        while (true) try {
                io.run();
                return;
            } catch (const std::exception& error) {
                spdlog::error("a connection failed: {}", error.what());
            }
    }

    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
    asio::strand<asio::io_context::executor_type> strand{io.get_executor()}; // of acceptor and timer
    Acceptor acceptor{strand};
    asio::basic_waitable_timer<asio::steady_timer::clock_type, asio::steady_timer::traits_type,
                               asio::strand<asio::io_context::executor_type>>
        timer{strand};
    std::shared_ptr<ConnectionSet> set;
    std::unique_ptr<SocketFile> file; // null: TCP
    bool accept_at_tick = false;
    uint16_t port = 0;
    std::string address; // empty: a Unix socket
    std::vector<std::thread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions& options, Handler handler) {
    auto core = std::make_unique<Core>(options, std::move(handler));
    PB_CHECK(core->listen());
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

void HttpServer::run() {
    asio::post(core_->strand, [c = core_.get()] {
        c->accept();
        c->tick();
    });
    for (uint32_t i = 0; i < std::max(core_->set->options.threads, 1u); ++i)
        core_->threads.emplace_back([c = core_.get()] { c->run(); });
}

HttpServer::~HttpServer() { stop(); }

uint16_t HttpServer::port() const { return core_->port; }
const std::string& HttpServer::address() const { return core_->address; }
size_t HttpServer::exchanges() const { return core_->set->exchanges; }
size_t HttpServer::connections() const {
    const std::lock_guard lock(core_->set->mutex);
    return core_->set->open.size();
}

void HttpServer::stop_listening() { core_->stop_listening(true); }

void HttpServer::wait_until_closed() {
    std::unique_lock lock(core_->set->mutex);
    core_->set->closed.wait(lock, [&] { return core_->set->open.empty() || core_->set->stopped; });
}

void HttpServer::stop() {
    if (core_->threads.empty()) return;
    {
        const std::lock_guard lock(core_->set->mutex);
        core_->set->stopped = true;
    }
    core_->set->closed.notify_all();
    core_->stop_listening(false);
    asio::post(core_->strand, [c = core_.get()] { c->timer.cancel(); });
    core_->each_connection([](Connection& c) { c.close_later(); });
    core_->work.reset();
    for (std::thread& t : core_->threads) t.join(); // each handler that is queued has run
    core_->threads.clear();
    core_->set->workers.join(); // after those that give it work; what it posts now is dropped with the context
}

}  // namespace patchbay::serve
