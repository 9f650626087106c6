#include "serve/client_routes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/exact_numbers.hpp"
#include "serve/error_reply.hpp"
#include "serve/generation.hpp"

namespace patchbay::serve {
namespace {

using Read = ReadRequest (*)(const Json&, const ServedModel&);
using ExchangePtr = std::shared_ptr<Exchange>;

// Numbers of a body are read as doubles, which those of a schema in it have to be.
std::optional<Refusal> rounded_in_form(const std::string& body) {
    const Result<> exact =
        check_exact_numbers(body, {"response_format", "structured_outputs", "guided_json", "guided_structural_tag"});
    if (exact) return std::nullopt;
    return Refusal{exact.failure(), exact.error().substr(0, exact.error().find(':'))};
}

class TextRequests { // of all routes
  public:
    explicit TextRequests(const TextContext& context) : c_(context) {}

    void handle(const ExchangePtr&, Read, const char* id_prefix);

  private:
    struct Arrived { // that was admitted, and whose model is there
        ExchangePtr exchange;
        Read read;
        const char* id_prefix;
        std::shared_ptr<void> permit;
        ModelGate::Entered entered;
    };
    enum class On { kStrand, kOtherThread };
    void read(const Arrived&, On);
    std::optional<GenerationRequest> read_body(const Arrived&); // none: it is refused, and answered so
    bool prepare(const Arrived&, GenerationRequest&); // what takes long of it; false: likewise
    void submit(const Arrived&, GenerationRequest);   // [strand]
    std::string new_id(const HttpRequest&, const char* prefix, const ServedModel&);

    const TextContext c_;
    std::atomic<uint64_t> next_id_ = 1;
};

void TextRequests::handle(const ExchangePtr& exchange, Read read, const char* id_prefix) {
    auto admitted = admit({c_.admission, c_.routes, c_.metrics}, exchange);
    if (!admitted) return;
    const auto waiting = std::make_shared<std::shared_ptr<void>>(std::move(admitted)); // null: gone [strand]
    exchange->set_callbacks(nullptr, [waiting] { waiting->reset(); });
    const std::weak_ptr<Exchange> asked = exchange; // of a client that goes meanwhile nothing is left to wait
    c_.gate.enter([this, asked, read, id_prefix, waiting](const ModelGate::Entered& entered) {
        const ExchangePtr live = asked.lock();
        if (!live) return;
        live->post([=, this] {
            auto permit = std::exchange(*waiting, nullptr);
            if (!permit) return;
            const Arrived arrived{live, read, id_prefix, std::move(permit), entered};
            constexpr size_t kLongBody = 32u << 10;
            if (live->request().body.size() <= kLongBody) this->read(arrived, On::kStrand);
            else live->offload([this, arrived] { this->read(arrived, On::kOtherThread); });
        });
    });
}

// What may take long is not done on a thread that serves connections.
void TextRequests::read(const Arrived& a, On on) {
    auto read = read_body(a);
    if (!read) return;
    const auto request = std::make_shared<GenerationRequest>(*std::move(read));
    const auto then = [this, a, request] { submit(a, std::move(*request)); };
    if (!request->sampling.structured_outputs && !engine::forbids_words(request->sampling)) // at once, before a close
        return on == On::kStrand ? then() : a.exchange->post(then);
    a.exchange->offload([this, a, request, then] {
        if (prepare(a, *request)) a.exchange->post(then);
    });
}

std::optional<GenerationRequest> TextRequests::read_body(const Arrived& a) {
    const uint64_t begin = RealClock().now_ns();
    auto body = parse_body(a.exchange->request().body);
    if (!body) {
        c_.routes.refuse(a.exchange, body.failure());
        return std::nullopt;
    }
    ReadRequest got = a.read(*body, a.entered.serving->model);
    if (!got.refusal && got.request.sampling.structured_outputs)
        got.refusal = rounded_in_form(a.exchange->request().body);
    c_.metrics.on_tokenized(RealClock().now_ns() - begin);
    if (!got.refusal) return std::move(got.request);
    c_.routes.refuse(a.exchange, got.refusal->failure, got.refusal->param);
    return std::nullopt;
}

bool TextRequests::prepare(const Arrived& a, GenerationRequest& request) {
    engine::Request all; // but for prompts
    all.sampling = std::move(request.sampling);
    const Result<> done = c_.engine.prepare(all);
    if (!done) {
        const Failure why = refused_as(StatusCode::kInvalid, done).failure();
        c_.routes.refuse(a.exchange, why, field_named_in(why.text));
        return false;
    }
    request.sampling = std::move(all.sampling);
    request.grammar = std::move(all.grammar);
    request.token_rules = std::move(all.token_rules);
    return true;
}

void TextRequests::submit(const Arrived& a, GenerationRequest request) {
    const ExchangePtr& exchange = a.exchange;
    const auto answered = [this, route = c_.routes.name_of(exchange->request().path)](const HttpResponse& response) {
        c_.metrics.on_answer(route, response.status);
        if (response.status == 429) c_.metrics.on_rejection("busy");
    };
    const uint32_t key = *c_.routes.keys().find(exchange->request());
    request.cache_per_key = c_.prefix_cache_per_key;
    const std::shared_ptr<const ServedModel> model(a.entered.serving, &a.entered.serving->model);
    std::make_shared<Generation>(Generation::Context{c_.engine, model, answered, c_.metrics}, exchange,
                                 std::move(request), new_id(exchange->request(), a.id_prefix, *model),
                                 static_cast<int64_t>(std::time(nullptr)), a.permit)
        ->start(key);
}

// The client's own X-Request-Id where it is usable; else a number that no other request of any start has.
std::string TextRequests::new_id(const HttpRequest& request, const char* prefix, const ServedModel& model) {
    const std::string_view given = request.header("x-request-id");
    const auto is_printable = [](char c) { return c > ' ' && c < 0x7F; };
    if (!given.empty() && given.size() <= 64 && std::ranges::all_of(given, is_printable))
        return prefix + std::string(given);
    char number[20];
    std::snprintf(number, sizeof number, "%llx", static_cast<unsigned long long>(next_id_++));
    return prefix + std::to_string(model.created) + "-" + number;
}

}  // namespace

std::shared_ptr<void> admit(const AdmissionContext& c, const std::shared_ptr<Exchange>& exchange) {
    Admission::Admitted admitted = c.admission.admit(*c.routes.keys().find(exchange->request()));
    if (admitted.permit) return std::move(admitted.permit);
    c.metrics.on_rejection(admitted.reason);
    HttpResponse reply = error_reply(admitted.why);
    if (admitted.retry_after_s > 0)
        for (auto& [name, value] : reply.headers)
            if (name == "Retry-After") value = std::to_string(admitted.retry_after_s);
    c.routes.answer(exchange, std::move(reply));
    return nullptr;
}

std::vector<Route> text_routes(const TextContext& context) {
    const auto requests = std::make_shared<TextRequests>(context);
    const auto route = [&](const char* path, Read read, const char* id_prefix) {
        const auto answer = [requests, read, id_prefix](const ExchangePtr& e) { requests->handle(e, read, id_prefix); };
        return Route{"POST", path, answer};
    };
    return {route("/v1/completions", read_completion, "cmpl-"),
            route("/v1/chat/completions", read_chat, "chatcmpl-"),
            route("/v1/embeddings", read_embedding, "embd-")};
}

}  // namespace patchbay::serve
