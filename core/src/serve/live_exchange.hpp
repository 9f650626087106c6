// The exchange of one request on a connection. Internal: includes Boost.Asio, so that few files do. Used by Connection.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "serve/connection_set.hpp"
#include "serve/http_answer.hpp"
#include "serve/http_server.hpp"
#include "serve/lost_answers.hpp"
#include "serve/request_reader.hpp"
#include "serve/sender.hpp"

namespace patchbay::serve {

class LiveExchange final : public Exchange, public std::enable_shared_from_this<LiveExchange> {
  public:
    // on_end: all of the answer was given to the sender; keep_alive: and another request may follow. [strand]
    LiveExchange(std::shared_ptr<Sender>, std::shared_ptr<ConnectionSet>, ParsedRequest,
                 std::function<void(bool keep_alive)> on_end);
    ~LiveExchange() override;

    const HttpRequest& request() const override { return parsed_.request; }
    void respond(HttpResponse) override;
    void begin_stream(HttpResponse head) override;
    void write(std::string_view part) override;
    void end_stream() override;
    bool busy() const override { return sender_->is_sending(); }
    void set_callbacks(std::function<void()> on_sent, std::function<void()> gone) override;
    void post(std::function<void()>) override;
    void offload(std::function<void()>) override;

    // What it throws becomes the answer, or the end of the stream. [any thread]
    void run(const std::function<void()>&);

    // ---- by the connection, on its strand ----
    AnswerState answer_state() const; // while nothing is being sent
    void sent();                      // all that was given
    void gone();                      // the client

  private:
    bool live() const { return !ended_ && sender_->is_open(); }
    void respond_here(HttpResponse);
    Ending prepare(HttpResponse& head); // adds the headers of CORS
    void break_off();
    void end();

    const std::shared_ptr<Sender> sender_;
    const std::shared_ptr<ConnectionSet> set_;
    ParsedRequest parsed_; // keep_alive: may become false
    const std::function<void(bool)> on_end_;
    bool streaming_ = false;
    std::atomic<bool> ended_ = false; // or the client has gone
    std::function<void()> on_sent_, gone_;
};

}  // namespace patchbay::serve
