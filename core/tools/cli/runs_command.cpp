#include "cli/commands.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/words.hpp"
#include "cli/print_results.hpp"
#include "cli/print_table.hpp"
#include "cli/report_command.hpp"
#include "experiment/results_lock.hpp"
#include "experiment/results_reader.hpp"
#include "experiment/results_store.hpp"
#include "experiment/results_table.hpp"
#include "experiment/table_text.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;
using experiment::StoredExperiment;
constexpr std::string_view kKilled = "killed";

struct RunsOptions {
    std::string folder = "results", a, b, table = "metric", format = "csv", out;
    std::vector<std::string> removed;
    bool full = false;
};

fs::path database_of(const fs::path& given) {
    std::error_code error;
    return fs::is_directory(given, error) ? given / experiment::kResultsFile : given;
}

// As `end` says, but `killed` if nothing writes any more what was never ended.
Result<StoredExperiment> stored(const fs::path& given) {
    const fs::path database = database_of(given);
    const experiment::ResultsWriter writer = experiment::writer_of(database.parent_path()); // first: it may end now
    PB_TRY(StoredExperiment e, experiment::read_experiment(database));
    if (e.end == "running" && writer == experiment::ResultsWriter::kNone) e.end = kKilled;
    return e;
}

std::string how_to_continue(const fs::path& folder) {
    return "continue: patchbay run --resume " + in_shell_quotes(folder.empty() ? "." : folder.string());
}

Failure without_statistics(const std::string& given, const StoredExperiment& e) {
    const fs::path database = database_of(given);
    const bool ended = e.end == kKilled || e.end == "interrupted";
    return invalid(database.string() + " has no statistics: the experiment " + (ended ? "was " : "is ") + e.end +
                   (ended ? " (" + how_to_continue(database.parent_path()) + ")" : ""));
}

Result<> list(const RunsOptions& o) {
    std::error_code error;
    if (!fs::exists(o.folder, error))
        return not_found("there is no folder " + o.folder + ": `patchbay run FILE` makes results; those of another "
                         "folder are listed by `patchbay runs list FOLDER`");
    if (!fs::is_directory(o.folder, error)) return invalid(o.folder + " is not a folder");
    std::vector<fs::path> found;
    if (fs::exists(database_of(o.folder), error)) {
        found.push_back(o.folder);
    } else {
        const fs::directory_iterator entries(o.folder, error);
        if (error) return fail("cannot read " + o.folder + ": " + error.message());
        for (const auto& entry : entries)
            if (fs::exists(entry.path() / experiment::kResultsFile, error)) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    std::vector<std::vector<std::string>> rows{{"results", "started", "state", "variants", "runs", "winner"}};
    std::string continued;
    for (const fs::path& folder : found) {
        const auto e = stored(folder);
        if (!e) {
            rows.push_back({folder.string(), "-", "not readable", "-", "-", "-"});
            continue;
        }
        rows.push_back({folder.string(), e->started, e->end, std::to_string(e->variants.size()),
                        std::to_string(e->valid_runs) + "/" + std::to_string(e->variants.size() * e->repeats),
                        e->conclusion.winner.empty() ? "none" : e->conclusion.winner});
        if (e->end == kKilled) continued += how_to_continue(folder) + '\n';
    }
    if (found.empty()) std::cout << "no results in " << o.folder << '\n';
    else print_table(std::move(rows));
    std::cout << continued;
    return {};
}

Result<> show(const RunsOptions& o) {
    PB_TRY(const StoredExperiment e, stored(o.a));
    if (!e.concluded()) return without_statistics(o.a, e);
    print_results({e.question, e.variants, e.baseline, &e.conclusion, {}}, o.full ? Detail::kFull : Detail::kScreen);
    std::cout << e.valid_runs << " of " << e.runs << " runs valid, "
              << (e.superseded_runs > 0 ? std::to_string(e.superseded_runs) + " more superseded, " : "") << "seed "
              << e.seed << ", " << printable(e.cpu)
              << ", patchbay " << printable(e.version) << ", " << printable(e.started) << '\n';
    return {};
}

// "engine.max_num_seqs (8, 16)" for each that differs
std::vector<std::string> differing(const std::map<std::string, std::string>& a,
                                   const std::map<std::string, std::string>& b) {
    std::vector<std::string> out;
    std::set<std::string> keys;
    for (const auto* of : {&a, &b})
        for (const auto& [key, value] : *of) keys.insert(key);
    for (const std::string& key : keys) {
        const auto shown = [&](const auto& of) { return of.contains(key) ? of.at(key) : std::string("none"); };
        if (shown(a) != shown(b)) out.push_back(key + " (" + shown(a) + ", " + shown(b) + ")");
    }
    return out;
}

// A line for each setting in which variants of one name differ; none for a name that only one of the two has.
void print_differing_settings(const StoredExperiment& a, const StoredExperiment& b) {
    constexpr size_t kMaxLines = 50;
    std::map<std::string, std::vector<std::string>> variants_of; // by line
    size_t compared = 0;
    for (size_t v = 0; v < a.variants.size(); ++v) {
        const auto at = std::find(b.variants.begin(), b.variants.end(), a.variants[v]);
        if (at == b.variants.end()) continue;
        ++compared;
        const auto& other = b.settings[static_cast<size_t>(at - b.variants.begin())];
        for (const std::string& line : differing(a.settings[v], other)) variants_of[line].push_back(a.variants[v]);
    }
    size_t lines = 0;
    for (const auto& [line, names] : variants_of) {
        if (++lines > kMaxLines) continue;
        std::cout << "they differ in: " << printable(line);
        for (const std::string& name : names)
            if (names.size() < compared) std::cout << (&name == &names[0] ? ", variant " : ", ") << printable(name);
        std::cout << '\n';
    }
    if (lines > kMaxLines)
        std::cout << "and in " << lines - kMaxLines << " more; all are in the table `variant` (patchbay runs export)\n";
}

// Variants of `a` that `b` does not have, which are not compared.
void print_missing_variants(const StoredExperiment& a, const StoredExperiment& b, const std::string& where) {
    std::vector<std::string> names;
    for (const std::string& name : a.variants)
        if (std::ranges::find(b.variants, name) == b.variants.end()) names.push_back(printable(name));
    if (!names.empty())
        std::cout << "note: only " << where << " has " << (names.size() > 1 ? "the variants " : "the variant ")
                  << joined(names) << ", which " << (names.size() > 1 ? "are" : "is") << " not compared\n";
}

// Metrics of variants that both have. Nothing is judged: the runs were not interleaved, so that what differs between
// two days differs here too.
Result<> compare(const RunsOptions& o) {
    PB_TRY(const StoredExperiment a, stored(o.a));
    PB_TRY(const StoredExperiment b, stored(o.b));
    for (const auto* e : {&a, &b})
        if (!e->concluded()) return without_statistics(e == &a ? o.a : o.b, *e);
    std::cout << "No verdicts: the two were not run in turns, and all that changed between them is in the numbers.\n";
    const std::pair<const char*, std::pair<std::string, std::string>> facts[] = {
        {"workload", {a.workload_yaml, b.workload_yaml}}, {"seed", {a.seed, b.seed}},
        {"input files", {a.inputs, b.inputs}},
        {"cpu", {a.cpu, b.cpu}},                          {"patchbay", {a.version, b.version}},
        {"program", {a.program, b.program}}};
    for (const auto& [what, values] : facts)
        if (values.first != values.second)
            std::cout << "they differ in: " << what
                      << (values.first.find('\n') == std::string::npos
                              ? " (" + printable(values.first) + ", " + printable(values.second) + ")"
                              : "")
                      << '\n';
    constexpr size_t kMaxBytes = 1000; // two sentences
    for (const std::string& line : differing(a.common, b.common))
        std::cout << "they differ in: " << printable(line, kMaxBytes) << '\n';
    print_differing_settings(a, b);
    print_missing_variants(a, b, "A");
    print_missing_variants(b, a, "B");
    const experiment::MetricList& infos = a.conclusion.list;
    std::vector<std::vector<std::string>> rows{{"variant", "metric", "unit", "A", "B", "B against A"}};
    for (size_t v = 0; v < a.variants.size(); ++v) {
        const auto at = std::find(b.variants.begin(), b.variants.end(), a.variants[v]);
        if (at == b.variants.end()) continue;
        const auto w = static_cast<size_t>(at - b.variants.begin());
        for (size_t m = 0; m < infos.size(); ++m) {
            const auto& primary = a.conclusion.primary;
            if (!o.full && std::find(primary.begin(), primary.end(), m) == primary.end()) continue;
            const auto other = experiment::metric_named(infos[m].name, b.conclusion.list);
            if (!other) continue;
            const double x = a.conclusion.results[v].metrics[m], y = b.conclusion.results[w].metrics[*other];
            if (std::isnan(x) && std::isnan(y)) continue;
            const experiment::Shift shift(x, infos[m].unit);
            const auto &of_a = a.conclusion.results[v], &of_b = b.conclusion.results[w];
            const bool at_most = of_a.bounds.contains(m), at_least = of_b.bounds.contains(*other);
            const bool known = !std::isnan(x) && !std::isnan(y) && !(at_most && at_least);
            rows.push_back({a.variants[v], infos[m].label, infos[m].unit, experiment::value_text(of_a, m),
                            experiment::value_text(of_b, *other),
                            known ? (at_least ? "≥" : at_most ? "≤" : "") + shift.number(y - x) + shift.suffix : ""});
        }
    }
    if (rows.size() == 1) return invalid("no variant of " + o.a + " has the name of one of " + o.b);
    print_table(std::move(rows));
    return {};
}

bool is_database(const fs::path& path) {
    constexpr std::string_view kBegin = "SQLite format 3";
    char bytes[kBegin.size()] = {};
    std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes);
    return std::string_view(bytes, sizeof bytes) == kBegin;
}

Result<> export_table(const RunsOptions& o) {
    const fs::path database = database_of(o.a);
    if (is_database(o.out)) return invalid(o.out + " is an SQLite database, which --out does not replace");
    if (o.format == "parquet") {
        if (o.out.empty()) return invalid("Parquet is a binary format: give a file with --out");
        return run_report_script("parquet.py", {database.string(), o.table, "--out", o.out});
    }
    if (o.out.empty()) return experiment::export_csv(database, o.table, std::cout);
    std::error_code error;
    const fs::file_type there = fs::symlink_status(o.out, error).type();
    const bool replaces = there == fs::file_type::regular || there == fs::file_type::not_found; // no pipe or device
    const fs::path to = replaces ? o.out + ".part" : o.out;
    std::ofstream file(to, std::ios::binary);
    Result<> done = experiment::export_csv(database, o.table, file);
    if (file.close(); done && !file) done = fail("cannot write " + o.out);
    if (replaces && done) fs::rename(to, o.out, error);
    if (replaces && done && error) done = fail("cannot write " + o.out + ": " + error.message());
    if (replaces && !done) fs::remove(to, error);
    return done;
}

// Only what patchbay made; the folder itself once it is empty.
Result<> remove(const RunsOptions& o) {
    for (const std::string& given : o.removed) {
        const fs::path folder = given;
        std::error_code error;
        if (!fs::exists(folder / experiment::kResultsFile, error))
            return invalid(given + " is not a results folder: it has no results.sqlite");
        PB_TRY(const auto lock, experiment::ResultsLock::take(folder)); // refused while an experiment runs
        for (const char* name : {experiment::kResultsFile, "results.sqlite-wal", "results.sqlite-shm", "report.html"}) {
            fs::remove(folder / name, error);
            if (error) return fail("cannot remove " + (folder / name).string() + ": " + error.message());
        }
        if (fs::is_empty(folder, error)) fs::remove(folder, error);
        else std::cout << given << ": other files remain\n";
    }
    return {};
}

}  // namespace

void add_runs_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("runs", "Look at the results of experiments");
    app->require_subcommand(1);
    app->footer("Examples:\n"
                "  patchbay runs list\n"
                "  patchbay runs show results/sweep --full\n"
                "  patchbay runs compare results/monday results/tuesday\n"
                "  patchbay runs export results/sweep --table request --out requests.csv\n"
                "  patchbay runs rm results/old");
    auto o = std::make_shared<RunsOptions>();
    const auto does = [&commands, o](CLI::App* sub, Result<> (*work)(const RunsOptions&)) {
        set_action(commands, sub, o, {work, print_error});
    };
    CLI::App* sub = app->add_subcommand("list", "Print the results in a folder");
    sub->add_option("FOLDER", o->folder, "folder of results, or of folders of them (default: results)");
    does(sub, list);
    sub = app->add_subcommand("show", "Print a result again");
    sub->add_option("RESULTS", o->a, "folder of results, or its results.sqlite")->required();
    sub->add_flag("--full", o->full, "every metric and every note");
    does(sub, show);
    sub = app->add_subcommand("compare", "Print two results side by side");
    sub->add_option("A", o->a, "folder of results")->required();
    sub->add_option("B", o->b, "another one")->required();
    sub->add_flag("--full", o->full, "every metric");
    does(sub, compare);
    sub = app->add_subcommand("export", "Write a table of a result as CSV or Parquet");
    sub->add_option("RESULTS", o->a, "folder of results, or its results.sqlite")->required();
    sub->add_option("--table", o->table, "metric (default), request, step, run, …: docs/experiments.md describes them");
    sub->add_option("--format", o->format, "csv (default) or parquet")->check(CLI::IsMember({"csv", "parquet"}));
    sub->add_option("--out", o->out, "file (default, of CSV: standard output)");
    does(sub, export_table);
    sub = app->add_subcommand("rm", "Remove results: the database and the report");
    sub->add_option("RESULTS", o->removed, "folders of results")->required();
    does(sub, remove);
}

}  // namespace patchbay::cli
