// The routes, and those for operators: health, models, metrics, tokens.
#include "base/printable.hpp"
#include "serve/dashboard.hpp"
#include "serve/error_reply.hpp"
#include "serve/server.hpp"

namespace patchbay::serve {

std::vector<Route> Server::routes() {
    const auto by = [this](void (Server::*f)(const std::shared_ptr<Exchange>&)) {
        return [this, f](const std::shared_ptr<Exchange>& exchange) { (this->*f)(exchange); };
    };
    constexpr bool kOpen = true;
    return {
        {"GET", "/health", by(&Server::health), kOpen},
        {"GET", "/ready", by(&Server::readiness), kOpen},
        {"GET", "/version", by(&Server::version), kOpen},
        {"GET", "/metrics", by(&Server::metrics_page), kOpen},
        {"GET", "/dashboard", by(&Server::dashboard), kOpen},
        {"GET", "/v1/models", by(&Server::models)},
        {"GET", "/v1/models/*", by(&Server::models)},
        {"POST", "/v1/completions", by(&Server::completions)},
        {"POST", "/v1/chat/completions", by(&Server::chat_completions)},
        {"POST", "/v1/embeddings", by(&Server::embeddings)},
        {"POST", "/tokenize", by(&Server::tokenize)},
        {"POST", "/detokenize", by(&Server::detokenize)},
    };
}

void Server::health(const std::shared_ptr<Exchange>& exchange) {
    if (const auto why = failure())
        return routes_.refuse(exchange, fail(StatusCode::kUnavailable, "the engine has failed: " + *why));
    routes_.answer(exchange, {200, "", ""});
}

void Server::readiness(const std::shared_ptr<Exchange>& exchange) {
    if (ready()) return routes_.answer(exchange, {200, "", ""});
    const auto state = draining_ ? service::ServiceState::kDraining : engine_->status().state;
    routes_.refuse(exchange, fail(StatusCode::kUnavailable, "the engine is " + std::string(name_of(state))));
}

void Server::version(const std::shared_ptr<Exchange>& exchange) {
    routes_.answer(exchange, {200, dumped({{"version", options_.version}})});
}

HttpResponse Server::metrics_text() {
    metrics_.scrape(http_->connections(), http_->exchanges());
    return {200, metrics_.text(), kMetricsType};
}

void Server::metrics_page(const std::shared_ptr<Exchange>& exchange) { routes_.answer(exchange, metrics_text()); }

void Server::dashboard(const std::shared_ptr<Exchange>& exchange) { routes_.answer(exchange, dashboard_page()); }

void Server::models(const std::shared_ptr<Exchange>& exchange) {
    const auto serving = gate_.serving();
    const ServedModel& model = serving->model;
    const auto model_json = [&](const std::string& name) -> Json {
        return {{"id", name},           {"object", "model"},   {"created", model.created}, {"owned_by", "patchbay"},
                {"root", model.root}, {"parent", nullptr}, {"max_model_len", model.max_model_len}};
    };
    constexpr std::string_view kOne = "/v1/models/";
    const std::string_view path = exchange->request().path;
    if (path.starts_with(kOne)) {
        for (const std::string& name : model.names)
            if (path.substr(kOne.size()) == name) return routes_.answer(exchange, {200, dumped(model_json(name))});
        return routes_.refuse(exchange,
                              fail(StatusCode::kNotFound, "the model '" + printable(path.substr(kOne.size())) +
                                                      "' does not exist, expected '" + model.names.front() + "'"));
    }
    Json list = Json::array();
    for (const std::string& name : model.names) list.push_back(model_json(name));
    routes_.answer(exchange, {200, dumped({{"object", "list"}, {"data", std::move(list)}})});
}

void Server::tokenize(const std::shared_ptr<Exchange>& exchange) {
    exchange->offload([this, exchange, serving = gate_.serving()] {
        const ServedModel& model = serving->model;
        const auto body = parse_body(exchange->request().body);
        if (!body) return routes_.refuse(exchange, body.failure());
        if (!model.tokenizer)
            return routes_.refuse(exchange, fail(StatusCode::kUnsupported, "the model has no tokenizer"));
        Fields f(*body);
        std::string text;
        bool special = !f.has("messages"), strings = false;
        f.read("add_special_tokens", special);
        f.read("return_token_strs", strings);
        if (f.has("messages")) {
            RenderedChat chat = render_chat(*body, model);
            f.keep(std::move(chat.refusal));
            text = std::move(chat.text);
        } else if (f.has("prompt")) f.read("prompt", text);
        else f.refuse("prompt", "is missing, expected it or 'messages'");
        if (const auto& refusal = f.refusal()) return routes_.refuse(exchange, refusal->failure, refusal->param);
        const auto tokens = special ? model.tokenizer->encode(text) : model.tokenizer->encode_inside(text);
        Json out{{"count", tokens.size()}, {"max_model_len", model.max_model_len}, {"tokens", tokens}};
        if (strings) {
            Json& list = out["token_strs"] = Json::array();
            for (const engine::TokenId id : tokens) list.push_back(std::string(model.tokenizer->token_bytes(id)));
        }
        routes_.answer(exchange, {200, dumped(out)});
    });
}

void Server::detokenize(const std::shared_ptr<Exchange>& exchange) {
    exchange->offload([this, exchange, serving = gate_.serving()] {
        const ServedModel& model = serving->model;
        const auto body = parse_body(exchange->request().body);
        if (!body) return routes_.refuse(exchange, body.failure());
        if (!model.tokenizer)
            return routes_.refuse(exchange, fail(StatusCode::kUnsupported, "the model has no tokenizer"));
        Fields f(*body);
        std::vector<engine::TokenId> tokens;
        if (!f.has("tokens")) f.refuse("tokens", "is missing");
        f.read("tokens", tokens);
        for (const engine::TokenId id : tokens)
            if (id < 0 || static_cast<uint32_t>(id) >= model.vocab_size)
                f.refuse("tokens",
                         "token " + std::to_string(id) + ", expected 0 to " + std::to_string(model.vocab_size - 1));
        if (const auto& refusal = f.refusal()) return routes_.refuse(exchange, refusal->failure, refusal->param);
        routes_.answer(exchange, {200, dumped({{"prompt", model.tokenizer->decode(tokens)}})});
    });
}

}  // namespace patchbay::serve
