#include "serve/http_connection.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>

#include "base/printable.hpp"
#include "serve/cors.hpp"
#include "serve/error_reply.hpp"

namespace patchbay::serve {
namespace {

constexpr size_t kReadBytes = 16u << 10;
constexpr size_t kMaxPipelinedBytes = 256u << 10; // read ahead while a request is answered

enum class Ending { kClose, kKeepAlive, kSaidKeepAlive }; // the last: HTTP/1.0 closes unless that is said

std::string head_of(const HttpResponse& response, Ending ending) {
    std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
    const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
    out.append(reason.data(), reason.size());
    if (!response.content_type.empty()) out += "\r\nContent-Type: " + response.content_type;
    for (const auto& [name, value] : response.headers) out += "\r\n" + name + ": " + value;
    if (ending == Ending::kClose) out += "\r\nConnection: close";
    if (ending == Ending::kSaidKeepAlive) out += "\r\nConnection: keep-alive";
    return out;
}

}  // namespace

class LiveExchange final : public Exchange, public std::enable_shared_from_this<LiveExchange> {
  public:
    LiveExchange(std::shared_ptr<Connection> connection, HttpRequest request)
        : connection_(std::move(connection)), request_(std::move(request)) {
        connection_->set_->exchanges += 1;
    }
    ~LiveExchange() override { connection_->set_->exchanges -= 1; }

    const HttpRequest& request() const override { return request_; }

    void respond(HttpResponse response) override {
        asio::dispatch(connection_->socket_.get_executor(),
                       [self = shared_from_this(), response = std::move(response)] { self->respond_here(response); });
    }

    void begin_stream(HttpResponse head_given) override {
        if (!live()) return;
        streaming_ = true;
        chunked_ = connection_->http_1_1_;
        connection_->keep_alive_ = connection_->keep_alive_ && chunked_ && !connection_->set_->closing;
        if (chunked_) head_given.headers.emplace_back("Transfer-Encoding", "chunked");
        connection_->send(head(std::move(head_given)) + "\r\n\r\n");
    }

    void write(std::string_view part) override {
        if (!live() || !streaming_ || part.empty()) return;
        if (!chunked_) return connection_->send(part);
        char size[24];
        const int digits = std::snprintf(size, sizeof size, "%zx\r\n", part.size());
        std::string chunk(size, static_cast<size_t>(digits));
        chunk += part;
        chunk += "\r\n";
        connection_->send(chunk);
    }

    void end_stream() override {
        if (!live() || !streaming_) return;
        if (chunked_) connection_->send("0\r\n\r\n");
        end();
    }

    bool busy() const override { return connection_->writing_; }

    void set_callbacks(std::function<void()> on_sent, std::function<void()> gone) override {
        if (!live()) return gone ? gone() : void();
        on_sent_ = std::move(on_sent);
        gone_ = std::move(gone);
    }

    void post(std::function<void()> f) override { asio::post(connection_->socket_.get_executor(), std::move(f)); }
    void offload(std::function<void()> f) override { asio::post(connection_->set_->workers, std::move(f)); }

    // ---- by the connection ----
    AnswerState answer_state() const {
        if (!streaming_) return ended_ ? AnswerState::kNone : AnswerState::kAwaited;
        return chunked_ && !ended_ ? AnswerState::kStream : AnswerState::kNone;
    }
    void sent() {
        if (const auto f = on_sent_) f();
    }
    void gone() {
        const auto f = std::exchange(gone_, nullptr);
        ended_ = true;
        on_sent_ = nullptr;
        if (f) f();
    }

  private:
    bool live() const { return !ended_ && !connection_->closed_; }

    std::string head(HttpResponse response) const {
        for (auto& header : cors_headers(connection_->set_->options.allowed_origins, request_))
            response.headers.push_back(std::move(header));
        const bool stays = connection_->keep_alive_;
        return head_of(response, !stays                    ? Ending::kClose
                                 : connection_->http_1_1_ ? Ending::kKeepAlive
                                                          : Ending::kSaidKeepAlive);
    }

    void respond_here(const HttpResponse& response) {
        if (!live() || streaming_) return;
        connection_->keep_alive_ = connection_->keep_alive_ && !connection_->set_->closing;
        std::string out = head(response);
        constexpr unsigned kNoContent = 204; // which has no length
        if (response.status != kNoContent) out += "\r\nContent-Length: " + std::to_string(response.body.size());
        out += "\r\n\r\n";
        if (!connection_->head_only_) out += response.body;
        connection_->send(out);
        end();
    }

    void end() {
        const auto self = shared_from_this(); // the callbacks may hold the last references
        ended_ = true;
        on_sent_ = nullptr;
        gone_ = nullptr;
        connection_->end_exchange();
    }

    const std::shared_ptr<Connection> connection_;
    const HttpRequest request_;
    bool streaming_ = false, chunked_ = false, ended_ = false;
    std::function<void()> on_sent_, gone_;
};

Connection::Connection(Socket socket, std::shared_ptr<ConnectionSet> set)
    : socket_(std::move(socket)), set_(std::move(set)) {
    const std::lock_guard lock(set_->mutex);
    set_->open.insert(this);
}

Connection::~Connection() {
    const std::lock_guard lock(set_->mutex);
    set_->open.erase(this);
    set_->closed.notify_all();
}

void Connection::start() {
    asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
        boost::system::error_code ignored;
        self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored); // which Unix sockets have not
        if (self->set_->stopped) return self->close();
        self->wait_for_request();
        self->read();
    });
}

void Connection::close_later() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::close_if_idle() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (!self->exchange_ && !self->parsing_ && !self->writing_) self->close();
    });
}

void Connection::set_deadline(uint32_t seconds) {
    deadline_ = seconds == 0 ? 0 : set_->tick + uint64_t(seconds) * ConnectionSet::kTicksPerSecond;
}

void Connection::wait_for_request() {
    parsing_ = false;
    continue_sent_ = false;
    set_deadline(set_->options.keep_alive_seconds);
}

void Connection::read() {
    if (reading_ || closed_ || eof_) return;
    if (exchange_ && buffer_.size() >= kMaxPipelinedBytes) return; // read on when it is answered
    reading_ = true;
    socket_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                                self->on_read(error, bytes);
                            });
}

void Connection::on_read(const boost::system::error_code& error, size_t bytes) {
    reading_ = false;
    if (closed_) return;
    if (error) return peer_gone();
    if (!discarding_) buffer_.commit(bytes);
    if (!exchange_ && !discarding_) parse();
    read();
}

// The client has closed its side. It looks like one that has closed both until something is sent, so it counts
// as gone: nothing goes on being computed for it. Answers that are ready are still sent.
void Connection::peer_gone() {
    eof_ = true;
    if (const auto exchange = exchange_) {
        exchange->gone();
        return close();
    }
    if (discarding_ || (!writing_ && !parsing_ && buffer_.size() == 0)) return close();
    keep_alive_ = keep_alive_ && buffer_.size() > 0;
    if (!writing_ && buffer_.size() > 0 && parsing_) close(); // half a request
}

void Connection::parse() {
    while (!exchange_ && !closed_ && !discarding_ && buffer_.size() > 0) {
        if (!parsing_) {
            parsing_ = true;
            parser_.emplace();
            parser_->eager(true);
            parser_->header_limit(set_->options.max_header_bytes);
            parser_->body_limit(set_->options.max_body_bytes);
            set_deadline(set_->options.read_seconds);
        }
        boost::system::error_code error;
        const size_t used = parser_->put(buffer_.data(), error);
        buffer_.consume(used);
        const bool needs_more = error == http::error::need_more;
        if (needs_more) error = {};
        if (error == http::error::body_limit)
            return refuse(413, "the body has more than " + std::to_string(set_->options.max_body_bytes) + " bytes");
        if (error == http::error::header_limit)
            return refuse(431,
                          "the headers have more than " + std::to_string(set_->options.max_header_bytes) + " bytes");
        if (error) return refuse(400, "this is no HTTP request: " + printable(error.message()));
        if (parser_->is_done()) return begin_exchange();
        if (parser_->is_header_done() && !continue_sent_ &&
            beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
            continue_sent_ = true;
            send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        if (needs_more || used == 0) break;
    }
    if (eof_ && !exchange_ && !writing_) close();
}

void Connection::begin_exchange() {
    const auto message = parser_->release();
    parser_.reset();
    parsing_ = false;
    HttpRequest request;
    request.method = std::string(message.method_string());
    std::string_view target(message.target().data(), message.target().size());
    for (const std::string_view scheme : {"http://", "https://"}) // as proxies are asked
        if (target.starts_with(scheme)) {
            const size_t path = target.find('/', scheme.size());
            target = path == target.npos ? "/" : target.substr(path);
        }
    request.path = std::string(target.substr(0, target.find('?')));
    for (const auto& field : message) {
        std::string name(field.name_string());
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        request.headers.emplace_back(std::move(name), std::string(field.value()));
    }
    request.body = std::move(message.body());
    http_1_1_ = message.version() >= 11;
    keep_alive_ = message.keep_alive();
    head_only_ = request.method == "HEAD";
    set_deadline(0);
    exchange_ = std::make_shared<LiveExchange>(shared_from_this(), std::move(request));
    note_answer();
    const auto exchange = exchange_;
    if (auto preflight = cors_preflight(set_->options.allowed_origins, exchange->request()))
        return exchange->respond(*std::move(preflight));
    try {
        set_->handler(exchange);
    } catch (const std::exception& error) {
        spdlog::error("a request to {} failed: {}", printable(exchange->request().path), error.what());
        exchange->respond(error_reply(fail(StatusCode::kInternal, "the server failed to answer this request")));
    }
}

void Connection::refuse(unsigned status, const std::string& text) {
    if (set_->options.on_rejection) set_->options.on_rejection(status == 400 ? "malformed" : "too_large");
    HttpResponse response = error_reply(fail(StatusCode::kInvalid, text));
    response.status = status;
    keep_alive_ = false;
    parsing_ = false;
    const std::string length = std::to_string(response.body.size());
    send(head_of(response, Ending::kClose) + "\r\nContent-Length: " + length + "\r\n\r\n" + response.body);
    discarding_ = true;
}

void Connection::send(std::string_view bytes) {
    if (closed_) return;
    pending_ += bytes;
    if (!writing_) write_more();
}

void Connection::note_answer() {
    if (closed_ || !exchange_) answer_.set(AnswerState::kNone);
    else answer_.set(writing_ ? AnswerState::kSending : exchange_->answer_state());
}

void Connection::write_more() {
    const bool whole = sent_ == sending_.size();
    writing_ = true;
    note_answer();
    if (whole && lost_answers_are_sent()) { // the process ends, and its last words may follow what was sent
        writing_ = false;
        return note_answer();
    }
    if (whole) {
        sending_.clear();
        sent_ = 0;
        std::swap(sending_, pending_);
    }
    set_deadline(set_->options.write_seconds);
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                                 self->on_written(error, bytes);
                             });
}

void Connection::on_written(const boost::system::error_code& error, size_t bytes) {
    writing_ = false;
    if (closed_) return;
    if (error) {
        if (const auto exchange = exchange_) exchange->gone();
        return close();
    }
    sent_ += bytes;
    if (sent_ < sending_.size() || !pending_.empty()) return write_more();
    note_answer();
    set_deadline(0);
    if (exchange_) {
        const auto exchange = exchange_;
        return exchange->sent();
    }
    if (!keep_alive_ || (set_->closing && !parsing_)) return finish_closing();
    if (!parsing_) wait_for_request();
    else set_deadline(set_->options.read_seconds);
    if (eof_ && buffer_.size() == 0) close();
}

void Connection::end_exchange() {
    exchange_.reset();
    note_answer();
    if (!keep_alive_ || set_->closing) {
        if (!writing_) finish_closing();
        return;
    }
    if (!writing_) wait_for_request();
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->next(); }); // not in the handler's frame
}

void Connection::next() {
    if (exchange_ || closed_ || discarding_) return;
    parse();
    read();
}

// Says that nothing more comes, and reads on until the client has closed, too: a reset would take the answer away.
void Connection::finish_closing() {
    if (eof_) return close();
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    discarding_ = true;
    buffer_.consume(buffer_.size());
    set_deadline(2);
    read();
}

void Connection::close() {
    if (closed_) return;
    if (const auto exchange = exchange_) exchange->gone();
    closed_ = true;
    exchange_.reset();
    note_answer(); // before the descriptor is another's
    deadline_ = 0;
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace patchbay::serve
