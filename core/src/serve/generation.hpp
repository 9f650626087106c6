// A request for text from its submission to the last byte of its answer: gathers the deltas of its streams, writes
// them as events or as a whole, and aborts them when the client goes. Lives as long as its exchange.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/generation_request.hpp"
#include "serve/http_server.hpp"
#include "serve/reply.hpp"
#include "serve/serve_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

class Generation : public std::enable_shared_from_this<Generation> {
  public:
    struct Context {
        service::EngineThread& engine;
        std::shared_ptr<const ServedModel> model;
        std::function<void(const HttpResponse&)> answered; // before it is sent; a stream: when it begins
        ServeMetrics& metrics;
    };
    // id: of the request, such as "cmpl-1f"; permit: held as long as the request is under way.
    Generation(Context, std::shared_ptr<Exchange>, GenerationRequest, std::string id, int64_t created,
               std::shared_ptr<void> permit);
    ~Generation(); // aborts what has not ended

    void start(uint32_t tenant); // submits all prompts, or refuses. [strand]

  private:
    void wake(); // [any thread]
    void pump(); // [strand]
    bool take(size_t stream); // false: it has failed
    void add(uint32_t index, const engine::RequestOutput&);
    void fail_with(const Failure&);
    void begin();
    void finish();
    void abort();
    void respond(HttpResponse);
    void release();

    const Context context_;
    const std::shared_ptr<Exchange> exchange_;
    const GenerationRequest request_;
    const std::unique_ptr<Reply> reply_;
    std::vector<std::shared_ptr<service::Stream>> streams_;
    std::vector<Choice> choices_;
    std::string events_; // of the pump under way
    Usage usage_;
    size_t ended_ = 0;   // choices
    bool begun_ = false, over_ = false;
    std::atomic<bool> woken_ = false; // a pump is posted
    std::shared_ptr<void> permit_, open_stream_;
};

}  // namespace patchbay::serve
