#include "cli/commands.hpp"

#include <unistd.h>

#include <iostream>
#include <memory>

#include "cli/flag_checks.hpp"
#include "cli/running_engine.hpp"
#include "top/top.hpp"

namespace patchbay::cli {
namespace {

struct TopOptions {
    RunningEngineFlags engine;
    std::string metrics; // HOST:PORT
    double interval = 1;
    bool once = false;
};

// HOST:PORT, also as a URL.
Result<serve::AdminAddress> metrics_address(std::string text) {
    const std::string given = text, scheme = "http://", route = "/metrics";
    if (text.starts_with(scheme)) text.erase(0, scheme.size());
    if (text.ends_with(route)) text.resize(text.size() - route.size());
    if (text.ends_with('/')) text.pop_back();
    auto out = serve::host_and_port(text);
    if (out && !out->host.empty()) return *std::move(out);
    return fail(StatusCode::kInvalid, "--metrics: got '" + given + "', expected HOST:PORT");
}

Result<> show(const TopOptions& o) {
    top::TopOptions options;
    options.interval = std::chrono::milliseconds(static_cast<int64_t>(o.interval * 1000));
    if (!o.metrics.empty()) {
        PB_TRY(options.source.address, metrics_address(o.metrics));
        options.source.routes = top::Source::Routes::kMetricsOnly;
    } else {
        PB_TRY(options.source.address, running_engine(o.engine));
        if (o.engine.address.empty()) options.source.find_next = [flags = o.engine] { return running_engine(flags); };
    }
    using Output = top::TopOptions::Output;
    const bool at_terminal = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1;
    options.output = o.once ? Output::kOnce : at_terminal ? Output::kLive : Output::kPlain;
    return top::run_top(options, std::cout);
}

void check_usage(const TopOptions& o) {
    check(o.engine);
    if (!o.metrics.empty() && !o.engine.address.empty())
        throw CLI::ValidationError("--metrics and --admin exclude each other");
    if (const auto address = metrics_address(o.metrics); !o.metrics.empty() && !address)
        throw CLI::ValidationError(address.error());
}

}  // namespace

void add_top_command(Commands& commands) {
    CLI::App* app =
        commands.app.add_subcommand("top", "Watch a running engine: load, latencies, plugins; swap and set");
    const auto o = std::make_shared<TopOptions>();
    add_flags_of_running_engine(*app, std::shared_ptr<RunningEngineFlags>(o, &o->engine));
    app->add_option("--metrics", o->metrics, "HOST:PORT of any /metrics to watch instead, without control");
    add_number(*app, "--interval", o->interval, "seconds between two updates", 0.1, 3600);
    app->add_flag("--once", o->once, "print one snapshot as text, after one interval, and end");
    app->footer(
        "Keys: 1 overview, 2 plugins, Tab the other page, s swap, e set, arrows scroll, q quit.\n"
        "Where standard output is not a terminal, it prints text once an interval.\n"
        "Examples:\n"
        "  patchbay top\n"
        "  patchbay top --admin ./admin.sock --interval 0.5\n"
        "  patchbay top --metrics 127.0.0.1:8000 --once");
    set_action(commands, app, o, {.run = show, .check = check_usage});
}

}  // namespace patchbay::cli
