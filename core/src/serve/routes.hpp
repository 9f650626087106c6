// Which part of a server answers which request: methods, paths, keys, and the counts of answers. Used by Server and
// Admin, each with routes of its own.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http_server.hpp"
#include "serve/serve_metrics.hpp"

namespace patchbay::serve {

class ApiKeys { // of which a request must bring one
  public:
    explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {} // none: no key is needed

    // The number of the key in "Authorization: Bearer KEY", 0 where none is needed; nothing: it brings no valid one.
    std::optional<uint32_t> find(const HttpRequest&) const;

  private:
    const std::vector<std::string> keys_;
};

struct Route {
    const char *method, *path; // a path that ends in '*' stands for all that begin with it
    std::function<void(const std::shared_ptr<Exchange>&)> answer;
    bool open = false; // needs no key
};

class Routes { // [any thread]
  public:
    // refusal: what a request without a key gets to read.
    Routes(std::vector<std::string> keys, ServeMetrics& metrics,
           std::string refusal = "no valid API key, expected 'Authorization: Bearer KEY'")
        : keys_(std::move(keys)), metrics_(metrics), refusal_(std::move(refusal)) {}

    void add(std::vector<Route>); // before the first request

    bool takes(const HttpRequest&) const; // whether handle() calls a route's function; its body is not looked at
    // Calls the route's function, or refuses: 404, 405, 401.
    void handle(const std::shared_ptr<Exchange>&) const;
    // Counted and sent.
    void answer(const std::shared_ptr<Exchange>&, HttpResponse) const;
    void refuse(const std::shared_ptr<Exchange>&, const Failure&, const std::string& param = {}) const;
    std::string_view name_of(std::string_view path) const; // for metrics; "other"
    const ApiKeys& keys() const { return keys_; }

  private:
    struct Found {
        const Route* route = nullptr;
        const char* allowed = ""; // null route: the method that its path has; empty: there is no such path
    };
    static bool matches(const Route&, std::string_view path);
    Found find(const HttpRequest&) const;
    bool is_open_to(const Route& route, const HttpRequest& request) const { return route.open || keys_.find(request); }
    void refuse_without_key(const std::shared_ptr<Exchange>&) const;

    std::vector<Route> all_;
    const ApiKeys keys_;
    ServeMetrics& metrics_;
    const std::string refusal_;
};

}  // namespace patchbay::serve
