#include "top/engine_link.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <filesystem>

#include "base/clock.hpp"
#include "base/refusals.hpp"
#include "engine/swap/swap_slot.hpp"
#include "serve/admin_client.hpp"
#include "top/quantity.hpp"
#include "top/status_fields.hpp"

namespace patchbay::top {
namespace {

using serve::Json;

double seconds_now() {
    static const RealClock clock;
    return static_cast<double>(clock.now_ns()) * 1e-9;
}

// Stopped with `outer`, or once the time is over.
class TimeLimit {
  public:
    TimeLimit(const std::stop_token& outer, std::chrono::milliseconds limit)
        : with_outer_(outer, Stop{source_}), timer_([this, limit](const std::stop_token& ended) {
              std::mutex mutex;
              std::unique_lock lock(mutex);
              std::condition_variable_any asleep;
              asleep.wait_for(lock, ended, limit, [] { return false; });
              if (ended.stop_requested()) return;
              over_ = true;
              source_.request_stop();
          }) {}

    std::stop_token token() const { return source_.get_token(); }
    bool over() const { return over_; }

  private:
    struct Stop {
        std::stop_source& source;
        void operator()() const { source.request_stop(); }
    };
    std::stop_source source_;
    std::atomic<bool> over_ = false;
    const std::stop_callback<Stop> with_outer_;
    const std::jthread timer_;
};

// The body of an answer that is no refusal.
Result<std::string> body_of(const Source& source, const std::string& method, const std::string& path,
                            const std::string& body, std::stop_token stop) {
    PB_TRY(serve::HttpResponse answer, serve::ask_admin(source.address, method, path, body, std::move(stop)));
    constexpr unsigned kRefused = 400, kConflict = 409; // the latter has the outcome of a swap
    if (answer.status < kRefused || answer.status == kConflict) return std::move(answer.body);
    const auto json = serve::parse_body(answer.body);
    const std::string reason = json ? field_text(*json, "/error/message") : "";
    if (reason.empty()) return fail(source.address.text() + path + ": HTTP " + std::to_string(answer.status));
    return fail(status_code_of(field_text(*json, "/error/code")), reason);
}

Result<Json> json_of(const Source& source, const std::string& method, const std::string& path, const std::string& body,
                     std::stop_token stop) {
    PB_TRY(const std::string text, body_of(source, method, path, body, std::move(stop)));
    auto json = serve::parse_body(text);
    if (!json) return prefixed(source.address.text() + path, json.failure());
    return json;
}

Json body_of(const Order& order) {
    Json params = Json::object();
    for (const auto& [key, value] : order.settings) params[key] = value;
    if (order.what == Order::What::kSet) return {{"kind", order.kind}, {"params", params}};
    const bool is_model = order.kind == name_of(engine::SwapSlot::kModel); // which the engine opens in its own folder
    const std::string plugin =
        is_model ? std::filesystem::absolute(order.plugin).lexically_normal().string() : order.plugin;
    return {{"kind", order.kind}, {"plugin", plugin}, {"params", params}};
}

Result<Sample> sample_of(const Source& source, const std::stop_token& stop) {
    Sample out;
    PB_TRY(const std::string text, body_of(source, "GET", "/metrics", "", stop));
    out.scrape = metrics::Scrape(text);
    if (!out.scrape.has("patchbay_steps_total"))
        return invalid(source.address.text() + "/metrics has no metrics of an engine (patchbay_steps_total)");
    out.at_seconds = seconds_now();
    out.address = source.address.text();
    if (source.routes == Source::Routes::kMetricsOnly) return out;
    PB_TRY(out.status, json_of(source, "GET", "/status", "", stop));
    return out;
}

}  // namespace

Result<Sample> take_sample(const Source& source, std::stop_token stop) {
    const TimeLimit limit(stop, source.answer_limit);
    auto taken = sample_of(source, limit.token());
    if (taken || !limit.over()) return taken;
    return unavailable("the engine on " + source.address.text() + " does not answer within " +
                       seconds_text(std::chrono::duration<double>(source.answer_limit).count()));
}

std::vector<SlotChoice> slot_choices(const Json& status, const Json& plugins) {
    std::vector<SlotChoice> out;
    const auto known = engine::swap_slots();
    const auto list = [](const Json& json, const char* name) {
        return json.is_object() && json.contains(name) && json[name].is_array() ? json[name] : Json::array();
    };
    for (const Json& slot : list(status, "slots")) {
        SlotChoice choice{field_text(slot, "/kind"), field_text(slot, "/plugin"), {}};
        if (std::ranges::find(known, choice.kind) == known.end()) continue;
        const bool takes_a_path = choice.kind == name_of(engine::SwapSlot::kModel);
        for (const Json& p : list(plugins, "plugins"))
            if (!takes_a_path && field_text(p, "/kind") == choice.kind && field_text(p, "/state") == "usable")
                choice.plugins.push_back(field_text(p, "/name"));
        if (takes_a_path || !choice.plugins.empty()) out.push_back(std::move(choice));
    }
    return out;
}

std::string answer_text(const Order& order, const Json& answer) {
    if (order.what == Order::What::kSet) {
        std::string out = "set " + order.kind + ":";
        for (const auto& [key, value] : order.settings) out += " " + key + "=" + field_text(answer, "/params/" + key);
        return out;
    }
    const std::string outcome = field_text(answer, "/outcome"), phase = field_text(answer, "/phase");
    std::string out = "swap " + order.kind + " " + field_text(answer, "/from/plugin") + " to " +
                      field_text(answer, "/to/plugin") + ": " + outcome;
    if (!phase.empty()) out += " in phase " + phase + ": " + field_message(answer, "/reason");
    const std::string pause = field_text(answer, "/pause_us");
    if (outcome == "committed" && !pause.empty())
        out += " (step " + field_text(answer, "/step") + ", pause " + seconds_text(std::stod(pause) * 1e-6) + ")";
    return out;
}

EngineLink::EngineLink(Source source, std::chrono::milliseconds interval, const Wakeup& wakeup)
    : interval_(interval), wakeup_(wakeup), source_(std::move(source)),
      sampler_([this](std::stop_token stop) { sample_until(std::move(stop)); }) {}

EngineLink::~EngineLink() {
    for (std::jthread& other : others_) other.request_stop();
}

EngineLink::News EngineLink::take_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, {});
}

Source EngineLink::source() const {
    const std::lock_guard lock(mutex_);
    return source_;
}

Result<Sample> EngineLink::sample(std::stop_token stop) {
    Source now = source();
    auto taken = take_sample(now, stop);
    if (taken || !now.find_next || taken.failure().code != StatusCode::kUnavailable) return taken;
    const auto next = now.find_next();
    if (!next) return taken;
    {
        const std::lock_guard lock(mutex_);
        source_.address = *next;
    }
    return take_sample(source(), stop);
}

void EngineLink::sample_until(std::stop_token stop) {
    std::condition_variable_any stopped;
    while (!stop.stop_requested()) {
        auto taken = sample(stop);
        std::unique_lock lock(mutex_);
        if (taken) news_.sample = *std::move(taken), news_.trouble.reset();
        else news_.trouble = taken.failure();
        wakeup_.wake();
        stopped.wait_for(lock, stop, interval_, [] { return false; });
    }
}

void EngineLink::start(std::function<void(std::stop_token)> work) { others_.emplace_back(std::move(work)); }

void EngineLink::send(const Order& order) {
    start([this, order](std::stop_token stop) {
        const bool swaps = order.what == Order::What::kSwap;
        const std::string body = body_of(order).dump(-1, ' ', false, Json::error_handler_t::replace);
        const auto answer = json_of(source(), "POST", swaps ? "/swap" : "/set", body, std::move(stop));
        Result<std::string> outcome = std::string();
        if (answer) outcome = answer_text(order, *answer);
        else outcome = answer.failure();
        const std::string what = answer && swaps ? field_text(*answer, "/outcome") : "";
        if (what == "refused" || what == "rolled back") outcome = fail(*outcome);
        const std::lock_guard lock(mutex_);
        news_.outcome = std::move(outcome);
        wakeup_.wake();
    });
}

void EngineLink::ask_for_plugins() {
    start([this](std::stop_token stop) {
        auto answer = json_of(source(), "GET", "/plugins", "", std::move(stop));
        const std::lock_guard lock(mutex_);
        if (answer) news_.plugins = *std::move(answer);
        else news_.outcome = Result<std::string>(answer.failure());
        wakeup_.wake();
    });
}

}  // namespace patchbay::top
