// Talks with a running engine on threads of its own, so that the screen never waits: samples of its metrics and status,
// and the answers to orders.
#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "metrics/scrape.hpp"
#include "serve/admin_address.hpp"
#include "serve/fields.hpp"
#include "top/dialog.hpp"
#include "top/wakeup.hpp"

namespace patchbay::top {

struct Source {
    serve::AdminAddress address;
    enum class Routes { kAdmin, kMetricsOnly } routes = Routes::kAdmin;
    // The engine that runs now, where the one at the address has ended: runs of an experiment follow one another.
    // Empty: only the one at the address is wanted.
    std::function<Result<serve::AdminAddress>()> find_next{};
    std::chrono::milliseconds answer_limit{10'000}; // of one sample
};

struct Sample {
    double at_seconds = 0; // on a steady clock
    std::string address;
    metrics::Scrape scrape;
    serve::Json status;    // null: there is none
};
Result<Sample> take_sample(const Source&, std::stop_token = {});

// GET /plugins as what may take each slot that GET /status names.
std::vector<SlotChoice> slot_choices(const serve::Json& status, const serve::Json& plugins);
std::string answer_text(const Order&, const serve::Json& answer);

class EngineLink {
  public:
    EngineLink(Source, std::chrono::milliseconds interval, const Wakeup&);
    ~EngineLink(); // answers that are still to come are given up; the engine carries the orders out all the same

    struct News { // since the last call
        std::optional<Sample> sample;
        std::optional<Failure> trouble;                 // why there is no sample
        std::optional<serve::Json> plugins;             // answer of GET /plugins
        std::optional<Result<std::string>> outcome;     // of an order
    };
    News take_news();
    void send(const Order&);
    void ask_for_plugins();

  private:
    void sample_until(std::stop_token);
    Result<Sample> sample(std::stop_token); // of the next engine, where there is one
    Source source() const;
    void start(std::function<void(std::stop_token)>);

    const std::chrono::milliseconds interval_;
    const Wakeup& wakeup_;
    mutable std::mutex mutex_;
    Source source_;                 // under the mutex, as is
    News news_;
    std::list<std::jthread> others_; // one for each order
    std::jthread sampler_;
};

}  // namespace patchbay::top
