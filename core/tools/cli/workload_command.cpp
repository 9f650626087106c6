#include "cli/commands.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/temporary_folder.hpp"
#include "cli/flag_checks.hpp"
#include "cli/print_table.hpp"
#include "cli/report_command.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/traces/description.hpp"

namespace patchbay::cli {
namespace {

using experiment::shown;
using experiment::TraceDescription;

struct WorkloadOptions {
    std::string file, format = "auto", plot;
    bool json = false;
    experiment::TraceOptions trace;
};

// "▁▂█": a column for each of at most `columns` parts, the mean of the rates in it.
std::string bars(const std::vector<double>& rates, size_t columns) {
    static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    columns = std::min(columns, rates.size());
    std::vector<double> means;
    for (size_t c = 0; c < columns; ++c) {
        const size_t from = c * rates.size() / columns, to = (c + 1) * rates.size() / columns;
        double sum = 0;
        for (size_t i = from; i < to; ++i) sum += rates[i];
        means.push_back(sum / static_cast<double>(to - from));
    }
    const double max_mean = *std::max_element(means.begin(), means.end());
    std::string out;
    for (const double m : means) out += kBars[max_mean > 0 ? std::min(7, static_cast<int>(m / max_mean * 8)) : 0];
    return out;
}

std::string percent(uint64_t part, uint64_t whole) {
    return shown(100 * static_cast<double>(part) / static_cast<double>(whole)) + " %";
}

// Without decimals where there are none: "7", "1,021".
std::string whole(double value) {
    return value == std::floor(value) && value < 1e3 ? std::to_string(static_cast<int>(value)) : shown(value);
}

void print_head(const TraceDescription& d) {
    std::vector<std::vector<std::string>> rows{{"format", d.format},
                                               {"requests", whole(static_cast<double>(d.requests))}};
    if (d.left_out > 0) rows.push_back({"left out", whole(static_cast<double>(d.left_out)) + " that hold no request"});
    if (d.sessions > 0)
        rows.push_back({"sessions", whole(static_cast<double>(d.sessions)) + ", of " +
                                        shown(static_cast<double>(d.turns) / static_cast<double>(d.sessions)) +
                                        " requests on average"});
    if (d.rates.empty()) {
        rows.push_back({"times", "none"});
    } else {
        rows.push_back({"duration", shown(d.seconds) + " s"});
        rows.push_back({"rate", shown(d.mean_rate) + " req/s on average, " +
                                    shown(*std::min_element(d.rates.begin(), d.rates.end())) + " to " +
                                    shown(*std::max_element(d.rates.begin(), d.rates.end())) + " over intervals of " +
                                    shown(d.seconds / static_cast<double>(d.rates.size())) + " s"});
        rows.push_back({"burstiness", shown(d.gap_cv) + " (deviation of the gaps over their mean; Poisson: 1)"});
    }
    if (d.known_tokens > 0)
        rows.push_back({"shared prefixes", percent(d.shared_tokens, d.known_tokens) +
                                               " of the prompt tokens are in a cache without end"});
    print_table(rows);
    if (!d.rates.empty()) std::cout << "\nrequests over time\n" << bars(d.rates, 80) << '\n';
}

void print_rest(const TraceDescription& d) {
    std::vector<std::vector<std::string>> lengths{{"length", "unit", "mean", "min", "p50", "p90", "p99", "max"}};
    for (const experiment::LengthSummary& l : d.lengths) {
        lengths.push_back({l.name, l.unit, shown(l.mean)});
        for (const size_t q : {0, 50, 90, 99, 100}) lengths.back().push_back(whole(l.quantiles[q]));
    }
    std::cout << '\n';
    print_table(lengths);
    if (d.classes.empty()) return;
    constexpr size_t kMaxClasses = 20;
    std::vector<std::vector<std::string>> classes{{"class", "requests", "share", "prompt mean", "output mean"}};
    for (const experiment::ClassSummary& c : d.classes) {
        if (classes.size() > kMaxClasses) break;
        classes.push_back({printable(c.name, 40), whole(static_cast<double>(c.requests)),
                           percent(c.requests, d.requests), shown(c.prompt_mean), shown(c.output_mean)});
    }
    std::cout << '\n';
    print_table(classes);
    if (d.classes.size() > kMaxClasses) std::cout << "and " << d.classes.size() - kMaxClasses << " more classes\n";
}

Result<> plot(const TraceDescription& d, const WorkloadOptions& o) {
    PB_TRY(const std::filesystem::path all, temporary_folder());
    std::string folder = (all / "patchbay-workload-XXXXXX").string();
    if (!mkdtemp(folder.data())) return fail("cannot make a folder in " + all.string());
    const auto data = std::filesystem::path(folder) / "workload.json";
    nlohmann::ordered_json json = json_of(d);
    json["name"] = std::filesystem::path(o.file).filename().string();
    std::ofstream(data) << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const Result<> done = run_report_script("workload.py", {data.string(), "--out", o.plot});
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    return done;
}

Result<> describe_file(const WorkloadOptions& o) {
    experiment::TraceOptions options = o.trace;
    for (const auto& [name, format] : experiment::trace_formats())
        if (o.format == name) options.format = format;
    PB_TRY(const experiment::Trace trace, experiment::read_trace(o.file, options));
    const TraceDescription d = experiment::describe(trace);
    if (o.json) {
        std::cout << json_of(d).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
        print_head(d);
        print_rest(d);
    }
    if (o.plot.empty()) return {};
    PB_CHECK(plot(d, o));
    if (!o.json) std::cout << "\nplot: " << o.plot << '\n';
    return {};
}

}  // namespace

void add_workload_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("workload", "Look at recorded traces");
    app->require_subcommand(1);
    CLI::App* describe =
        app->add_subcommand("describe", "Print what a trace contains: rates, lengths, sharing, classes");
    describe->footer("Examples:\n"
                     "  patchbay workload describe azure.csv\n"
                     "  patchbay workload describe mooncake.jsonl --from-s 600 --until-s 1200 --plot mooncake.svg\n"
                     "docs/experiments.md describes the formats.");
    auto o = std::make_shared<WorkloadOptions>();
    std::vector<std::string> formats;
    for (const auto& [name, format] : experiment::trace_formats()) formats.push_back(name);
    describe->add_option("TRACE", o->file, "file of a trace")->required()->check(CLI::ExistingFile);
    describe->add_option("--format", o->format, "format of the file (default: detected from its first line)")
        ->check(CLI::IsMember(formats));
    describe->add_option("--skip", o->trace.skip, "rows left out at the start")->transform(within<uint32_t>(0));
    describe->add_option("--from-s", o->trace.from_s, "rows before this time are left out")
        ->transform(within(0.0, 1e9));
    describe->add_option("--until-s", o->trace.until_s, "rows from this time on are left out")
        ->transform(within(0.0, 1e9));
    describe->add_option("--block-tokens", o->trace.block_tokens, "tokens per block of a Mooncake trace (default: 512)")
        ->transform(within<uint32_t>(1, 1 << 20));
    describe->add_option("--length-scale", o->trace.length_scale, "factor that all lengths are multiplied by")
        ->transform(within(1e-6, 1e3));
    describe->add_option("--plot", o->plot, "also draw a plot into this file, .svg, .png or .pdf");
    describe->add_flag("--json", o->json, "print JSON, with every quantile");
    set_action(commands, describe, o, {describe_file, print_error});
}

}  // namespace patchbay::cli
