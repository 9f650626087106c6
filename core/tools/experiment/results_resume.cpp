#include "experiment/results_resume.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "base/words.hpp"
#include "experiment/drive.hpp"
#include "experiment/sqlite.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kBetweenFaults = "; "; // as ResultsStore writes them

class Record {
  public:
    static Result<Record> open(const std::filesystem::path& file) {
        sqlite3* db = nullptr;
        const int code = sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
        Record record(file, db);
        if (code != SQLITE_OK) return record.fault();
        return record;
    }
    template <class F>
    Result<> each(const std::string& sql, F&& take) const {
        Query rows(db_.get(), sql);
        while (rows.next()) take(rows);
        return rows.failed() ? Result<>(fault()) : Result<>();
    }

  private:
    Record(std::filesystem::path file, sqlite3* db) : file_(std::move(file)), db_(db) {}
    Failure fault() const { return fail("cannot read " + file_.string() + ": " + sqlite3_errmsg(db_.get())); }

    std::filesystem::path file_;
    SqliteFile db_;
};

engine::FinishReason finish_reason(const std::string& name) {
    for (size_t i = 0; i < engine::kFinishReasons; ++i)
        if (engine::name_of(static_cast<engine::FinishReason>(i)) == name) return static_cast<engine::FinishReason>(i);
    return engine::FinishReason::kError;
}

host::SwapState swap_state(const std::string& name) {
    using host::SwapState;
    for (const SwapState s : {SwapState::kReady, SwapState::kPosted, SwapState::kOnProbation, SwapState::kCommitted,
                              SwapState::kRefused, SwapState::kRolledBack})
        if (host::name_of(s) == name) return s;
    return SwapState::kRefused;
}

RunEnd end_of(const std::string& word) { return word == "complete" ? RunEnd::kComplete : RunEnd::kFailed; }

// The host's part of the share is not apart from that of other processes.
std::optional<CpuUse> use_of(const std::optional<double>& others_share) {
    return others_share ? std::optional(CpuUse{.others = *others_share}) : std::nullopt;
}

std::vector<std::string> faults_in(const std::string& reason) {
    std::vector<std::string> out;
    for (size_t from = 0; from < reason.size();) {
        const size_t end = std::min(reason.find(kBetweenFaults, from), reason.size());
        out.push_back(reason.substr(from, end - from));
        from = end + kBetweenFaults.size();
    }
    return out;
}

// As ResultsStore joins outputs 1, 2, …
std::vector<std::vector<engine::TokenId>> parted(const std::vector<engine::TokenId>& joined) {
    std::vector<std::vector<engine::TokenId>> out;
    for (size_t at = 0; at < joined.size();) {
        const size_t begin = at + 1, count = std::min(static_cast<size_t>(joined[at]), joined.size() - begin);
        out.emplace_back(joined.begin() + static_cast<std::ptrdiff_t>(begin),
                         joined.begin() + static_cast<std::ptrdiff_t>(begin + count));
        at = begin + count;
    }
    return out;
}

Result<> read_requests(const Record& db, const std::string& of_run, RunRecord& run) {
    return db.each("SELECT arrival_ns, first_scheduled_ns, finish_ns, token_ns, output_ids, prompt_tokens, "
                   "cached_tokens, preemptions, deadline_ns, tenant, priority, finish_reason, error, class, other_ids "
                   "FROM request" + of_run + " ORDER BY number",
                   [&](Query& row) {
                       RequestRecord& r = run.requests.emplace_back();
                       std::string finish;
                       std::vector<engine::TokenId> others;
                       row.read(r.arrival_ns, r.first_scheduled_ns, r.finish_ns, r.token_ns, r.output, r.prompt_tokens,
                                r.cached_tokens, r.preemptions, r.deadline_ns, r.tenant, r.priority, finish, r.error,
                                r.label, others);
                       r.finish = finish_reason(finish);
                       r.others = parted(others);
                   });
}

Result<> read_swaps(const Record& db, const std::string& of_run, RunRecord& run) {
    return db.each("SELECT task, kind, state, step, time_ns, pause_ns FROM swap" + of_run + " ORDER BY number",
                   [&](Query& row) {
                       auto& [swap, task] = run.swaps.emplace_back();
                       std::string state;
                       row.read(task, swap.kind, state, swap.step, swap.time_ns, swap.pause_ns);
                       swap.state = swap_state(state);
                   });
}

// The bytes of a plugin are what matters; it may be found by another path.
nlohmann::json without_paths(const std::string& plugins_json) {
    auto plugins = nlohmann::json::parse(plugins_json, nullptr, false);
    for (auto& plugin : plugins)
        if (plugin.is_object()) plugin.erase("path");
    return plugins;
}

Result<> check_program(const Record& db, const std::string& now) {
    std::string then;
    PB_CHECK(db.each("SELECT program_sha256 FROM experiment", [&](Query& row) { row.read(then); }));
    if (then == now) return {};
    return invalid("the experiment was begun by another build of patchbay, with the SHA-256 " + then.substr(0, 12) +
                   "…, and this one is " + now.substr(0, 12) + "… (start the experiment again)");
}

Result<> check_inputs(const Record& db, const std::vector<InputFile>& now) {
    std::string changed;
    PB_CHECK(db.each("SELECT path, sha256 FROM input", [&](Query& row) {
        std::string path, sha256;
        row.read(path, sha256);
        if (std::ranges::find(now, sha256, &InputFile::sha256) == now.end()) changed = path;
    }));
    if (changed.empty()) return {};
    return invalid(changed + " is no longer what it was when the experiment began (start the experiment again)");
}

Result<> check_variants(const Record& db, const std::vector<VariantRow>& variants) {
    std::string different;
    size_t count = 0;
    PB_CHECK(db.each("SELECT name, facts_json, plugins_json FROM variant ORDER BY id", [&](Query& row) {
        VariantRow then;
        row.read(then.name, then.facts_json, then.plugins_json);
        const VariantRow* const now = count < variants.size() ? &variants[count] : nullptr;
        count += 1;
        const bool same = now && now->name == then.name && now->facts_json == then.facts_json &&
                          without_paths(now->plugins_json) == without_paths(then.plugins_json);
        if (!same && different.empty()) different = then.name;
    }));
    if (count != variants.size()) return invalid("the record is of " + std::to_string(count) + " variants");
    if (different.empty()) return {};
    return invalid("variant '" + different + "' is no longer what it was when the experiment began: its model, "
                   "plugins, or what was chosen for this machine changed (start the experiment again)");
}

}  // namespace

Result<RecordedSpec> recorded_spec(const std::filesystem::path& database) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(database, error))
        return not_found(database.string() + " is not there; expected a folder of results that were interrupted");
    PB_TRY(const Record db, Record::open(database));
    uint64_t version = 0;
    PB_CHECK(db.each("PRAGMA user_version", [&](Query& row) { row.read(version); }));
    if (version != kResultsVersion)
        return unsupported(database.string() + " has tables of version " + std::to_string(version) + ", expected " +
                           std::to_string(kResultsVersion) + ": another version of patchbay made it");
    RecordedSpec spec;
    std::string end;
    PB_CHECK(db.each("SELECT name, spec_yaml, end FROM experiment",
                     [&](Query& row) { row.read(spec.name, spec.yaml, end); }));
    if (end == "complete")
        return invalid(database.string() + ": the experiment is complete, there is nothing to resume");
    return spec;
}

Result<std::vector<RunSummary>> recorded_runs(const std::filesystem::path& database, const ExperimentRow& experiment,
                                              const std::vector<VariantRow>& variants, const Counting& counting) {
    PB_TRY(const Record db, Record::open(database));
    PB_CHECK(check_variants(db, variants));
    PB_CHECK(check_inputs(db, experiment.inputs));
    PB_CHECK(check_program(db, experiment.machine.program_sha256));
    struct Run {
        RunRecord record;
        uint64_t id = 0;
        bool superseded = false;
    };
    std::vector<Run> runs;
    PB_CHECK(db.each("SELECT variant_id, repeat, position, started, duration_ns, end, reason, id, attempt, superseded, "
                     "steal_share + others_share FROM run WHERE end NOT IN ('interrupted', 'running') "
                     "ORDER BY position, attempt",
                     [&](Query& row) {
                         auto& [run, id, superseded] = runs.emplace_back();
                         std::string end, reason;
                         std::optional<double> others_share;
                         row.read(run.variant, run.repeat, run.position, run.started, run.duration_ns, end, reason, id,
                                  run.attempt, superseded, others_share);
                         run.end = end_of(end);
                         run.faults = faults_in(reason);
                         run.cpu_use = use_of(others_share);
                     }));
    std::vector<RunSummary> out;
    for (Run& recorded : runs) { // one at a time, as all requests together may not fit in memory
        RunRecord& run = recorded.record;
        const std::string of_run = " WHERE run_id = " + std::to_string(recorded.id);
        PB_CHECK(read_requests(db, of_run, run));
        PB_CHECK(read_swaps(db, of_run, run));
        PB_CHECK(db.each("SELECT name, value FROM run_metric" + of_run, [&](Query& row) {
            NamedNumber& n = run.numbers.emplace_back();
            row.read(n.name, n.value);
        }));
        out.push_back(summary_of(run, counting));
        out.back().superseded = recorded.superseded;
        run.requests = std::vector<RequestRecord>();
    }
    PB_CHECK(db.each("SELECT variant_id, repeat, position, attempt, rate, objective_share, end, reason, superseded, "
                     "duration_ns, steal_share + others_share FROM capacity_run WHERE end <> 'interrupted'",
                     [&](Query& row) {
                         RunSummary& run = out.emplace_back();
                         std::string end, reason;
                         uint64_t duration_ns = 0;
                         std::optional<double> others_share;
                         row.read(run.variant, run.repeat, run.position, run.attempt, run.rate, run.objective, end,
                                  reason, run.superseded, duration_ns, others_share);
                         run.end = end_of(end);
                         run.faults = faults_in(reason);
                         run.others_share = judged_share(use_of(others_share), duration_ns);
                     }));
    return out;
}

Result<std::string> other_machine_notice(const std::filesystem::path& database, const MachineFacts& now) {
    constexpr std::string_view kBegin = "the experiment was continued on another machine or system, ";
    PB_TRY(const Record db, Record::open(database));
    std::string said;
    PB_CHECK(db.each("SELECT text FROM notice", [&](Query& row) {
        if (std::string text = row.read<std::string>(); text.starts_with(kBegin)) said = std::move(text);
    }));
    MachineFacts then;
    PB_CHECK(db.each("SELECT cpu, cores, memory_bytes, os, kernel FROM experiment", [&](Query& row) {
        row.read(then.cpu, then.cores, then.memory_bytes, then.os, then.kernel);
    }));
    const auto memory = [](const MachineFacts& m) { return std::to_string(m.memory_bytes >> 20) + " MiB"; };
    std::vector<std::string> changes;
    const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
        if (before != after) changes.push_back(std::string(what) + " (" + before + ", now " + after + ")");
    };
    compare("cpu", then.cpu, now.cpu);
    compare("cores", std::to_string(then.cores), std::to_string(now.cores));
    compare("memory", memory(then), memory(now));
    compare("os", then.os, now.os);
    compare("kernel", then.kernel, now.kernel);
    if (changes.empty()) return said;
    return std::string(kBegin) + "so that its runs may differ in more than their variants: " + joined(changes);
}

}  // namespace patchbay::experiment
