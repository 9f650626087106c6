#include "serve/routes.hpp"

#include <algorithm>
#include <iterator>

#include "base/printable.hpp"
#include "serve/error_reply.hpp"

namespace patchbay::serve {

std::optional<uint32_t> ApiKeys::find(const HttpRequest& request) const {
    if (keys_.empty()) return 0;
    std::string_view given = request.header("authorization");
    constexpr std::string_view kScheme = "bearer ";
    const bool bearer = given.size() > kScheme.size() &&
                        std::equal(kScheme.begin(), kScheme.end(), given.begin(),
                                   [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
    if (!bearer) return std::nullopt;
    given.remove_prefix(kScheme.size());
    std::optional<uint32_t> found;
    for (uint32_t i = 0; i < keys_.size(); ++i) {
        const std::string& key = keys_[i];
        unsigned different = key.size() != given.size(); // in a time that says nothing about the key
        for (size_t n = 0; n < given.size(); ++n)
            different |= static_cast<unsigned char>(given[n]) ^ static_cast<unsigned char>(key[n % key.size()]);
        if (different == 0) found = i;
    }
    return found;
}

void Routes::add(std::vector<Route> more) {
    all_.insert(all_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

bool Routes::matches(const Route& route, std::string_view path) {
    const std::string_view own = route.path;
    return own.ends_with('*') ? path.starts_with(own.substr(0, own.size() - 1)) : path == own;
}

std::string_view Routes::name_of(std::string_view path) const {
    for (const Route& route : all_)
        if (matches(route, path)) return route.path;
    return "other";
}

Routes::Found Routes::find(const HttpRequest& request) const {
    Found out;
    for (const Route& route : all_) {
        if (!matches(route, request.path)) continue;
        if (request.method == route.method || (request.method == "HEAD" && std::string_view(route.method) == "GET"))
            return {&route};
        out.allowed = route.method;
    }
    return out;
}

bool Routes::takes(const HttpRequest& request) const {
    const Found found = find(request);
    return found.route && is_open_to(*found.route, request);
}

void Routes::handle(const std::shared_ptr<Exchange>& exchange) const {
    const HttpRequest& request = exchange->request();
    const auto [route, allowed] = find(request);
    if (route) return is_open_to(*route, request) ? route->answer(exchange) : refuse_without_key(exchange);
    if (*allowed == '\0')
        return refuse(exchange, fail(StatusCode::kNotFound, "there is no " + printable(request.path)));
    HttpResponse reply = error_reply(
        fail(StatusCode::kInvalid, printable(request.method, 20) + " " + request.path + ", expected " + allowed));
    reply.status = 405;
    reply.headers.emplace_back("Allow", allowed);
    answer(exchange, std::move(reply));
}

void Routes::refuse_without_key(const std::shared_ptr<Exchange>& exchange) const {
    metrics_.on_rejection("unauthorised");
    HttpResponse reply =
        error_reply(fail(StatusCode::kInvalid, refusal_));
    reply.status = 401;
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    answer(exchange, std::move(reply));
}

void Routes::answer(const std::shared_ptr<Exchange>& exchange, HttpResponse response) const {
    metrics_.on_answer(name_of(exchange->request().path), response.status);
    exchange->respond(std::move(response));
}

void Routes::refuse(const std::shared_ptr<Exchange>& exchange, const Failure& failure, const std::string& param) const {
    answer(exchange, error_reply(failure, param));
}

}  // namespace patchbay::serve
