#include "serve/client_routes.hpp"

#include <charconv>
#include <functional>

#include "base/printable.hpp"
#include "serve/error_reply.hpp"
#include "serve/generation_request.hpp"
#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

using ExchangePtr = std::shared_ptr<Exchange>;
using Contents = std::function<Json(Fields&, const Json& body, const ServedModel&)>; // of no matter where it refuses

class ModelRoutes {
  public:
    ModelRoutes(const ModelGate& gate, const AdmissionContext& admission)
        : gate_(gate), admission_(admission), routes_(admission.routes) {}

    void models(const ExchangePtr&) const;
    void tokenize(const ExchangePtr&) const;
    void detokenize(const ExchangePtr&) const;

  private:
    // Answers what the body asks of the model's tokenizer, where the request is admitted, off the threads that serve
    // connections.
    void offload(const ExchangePtr&, Contents) const;

    const ModelGate& gate_;
    const AdmissionContext admission_;
    const Routes& routes_;
};

HttpResponse response_of(const Contents& contents, const std::string& text, const ServedModel& model) {
    const auto body = parse_body(text);
    if (!body) return error_reply(body.failure());
    if (!model.tokenizer) return error_reply(fail(StatusCode::kUnsupported, "the model has no tokenizer"));
    Fields fields(*body);
    const Json out = contents(fields, *body, model);
    if (const auto& refusal = fields.refusal()) return error_reply(refusal->failure, refusal->param);
    return {200, dumped(out)};
}

// %2F and the like of a path as the bytes that they stand for; what is no such code stays as it is.
std::string decoded(std::string_view path) {
    std::string out;
    for (size_t at = 0; at < path.size(); ++at) {
        uint8_t byte = 0;
        const bool coded = path[at] == '%' && at + 2 < path.size();
        const char* const digits = path.data() + at + 1;
        if (coded && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
            out += static_cast<char>(byte);
            at += 2;
        } else {
            out += path[at];
        }
    }
    return out;
}

void ModelRoutes::models(const ExchangePtr& exchange) const {
    const auto serving = gate_.serving();
    const ServedModel& model = serving->model;
    const auto model_json = [&](const std::string& name) -> Json {
        return {{"id", name},           {"object", "model"},   {"created", model.created}, {"owned_by", "patchbay"},
                {"root", model.root}, {"parent", nullptr}, {"max_model_len", model.max_model_len}};
    };
    constexpr std::string_view kOne = "/v1/models/";
    const std::string_view path = exchange->request().path;
    if (path.starts_with(kOne)) {
        const std::string asked = decoded(path.substr(kOne.size()));
        for (const std::string& name : model.names)
            if (asked == name) return routes_.answer(exchange, {200, dumped(model_json(name))});
        return routes_.refuse(exchange,
                              fail(StatusCode::kNotFound, "the model '" + printable(asked) +
                                                      "' does not exist, expected '" + model.names.front() + "'"));
    }
    Json list = Json::array();
    for (const std::string& name : model.names) list.push_back(model_json(name));
    routes_.answer(exchange, {200, dumped({{"object", "list"}, {"data", std::move(list)}})});
}

void ModelRoutes::offload(const ExchangePtr& exchange, Contents contents) const {
    auto permit = admit(admission_, exchange);
    if (!permit) return;
    exchange->offload([this, exchange, serving = gate_.serving(), contents = std::move(contents),
                       permit = std::move(permit)]() mutable {
        HttpResponse response = response_of(contents, exchange->request().body, serving->model);
        permit.reset(); // before the client has the answer, and sends its next request
        routes_.answer(exchange, std::move(response));
    });
}

void ModelRoutes::tokenize(const ExchangePtr& exchange) const {
    offload(exchange, [](Fields& f, const Json& body, const ServedModel& model) -> Json {
        std::string text;
        bool special = !f.has("messages"), strings = false;
        f.read("add_special_tokens", special);
        f.read("return_token_strs", strings);
        if (f.has("messages")) {
            RenderedChat chat = render_chat(body, model);
            f.keep(std::move(chat.refusal));
            text = std::move(chat.text);
        } else if (f.has("prompt")) f.read("prompt", text);
        else f.refuse("prompt", "is missing, expected it or 'messages'");
        if (f.refusal()) return {};
        const auto tokens = special ? model.tokenizer->encode(text) : model.tokenizer->encode_inside(text);
        Json out{{"count", tokens.size()}, {"max_model_len", model.max_model_len}, {"tokens", tokens}};
        if (strings) {
            Json& list = out["token_strs"] = Json::array();
            for (const engine::TokenId id : tokens) list.push_back(std::string(model.tokenizer->token_bytes(id)));
        }
        return out;
    });
}

void ModelRoutes::detokenize(const ExchangePtr& exchange) const {
    offload(exchange, [](Fields& f, const Json&, const ServedModel& model) -> Json {
        std::vector<engine::TokenId> tokens;
        if (!f.has("tokens")) f.refuse("tokens", "is missing");
        f.read("tokens", tokens);
        for (const engine::TokenId id : tokens)
            if (id < 0 || static_cast<uint32_t>(id) >= model.vocab_size)
                f.refuse("tokens",
                         "token " + std::to_string(id) + ", expected 0 to " + std::to_string(model.vocab_size - 1));
        if (f.refusal()) return {};
        return {{"prompt", model.tokenizer->decode(tokens, text::SpecialTokens::kKept)}};
    });
}

}  // namespace

std::vector<Route> model_routes(const ModelGate& gate, const AdmissionContext& admission) {
    const auto of = std::make_shared<const ModelRoutes>(gate, admission);
    const auto models = [of](const ExchangePtr& e) { of->models(e); };
    return {
        {"GET", "/v1/models", models},
        {"GET", "/v1/models/*", models},
        {"POST", "/tokenize", [of](const ExchangePtr& e) { of->tokenize(e); }},
        {"POST", "/detokenize", [of](const ExchangePtr& e) { of->detokenize(e); }},
    };
}

}  // namespace patchbay::serve
