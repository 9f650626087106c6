#include "experiment/results_resume.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "experiment/drive.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::string_view kBetweenFaults = "; "; // as ResultsStore writes them

class Row {
  public:
    explicit Row(sqlite3_stmt* s) : s_(s) {}
    std::string text(int column) const {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(s_, column));
        return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(s_, column))) : "";
    }
    std::optional<double> real(int column) const { // none: NULL
        if (sqlite3_column_type(s_, column) == SQLITE_NULL) return std::nullopt;
        return sqlite3_column_double(s_, column);
    }
    uint64_t integer(int column) const { return static_cast<uint64_t>(sqlite3_column_int64(s_, column)); }
    template <class T>
    std::vector<T> array(int column) const {
        const void* bytes = sqlite3_column_blob(s_, column);
        std::vector<T> out(static_cast<size_t>(sqlite3_column_bytes(s_, column)) / sizeof(T));
        if (bytes && !out.empty()) std::memcpy(out.data(), bytes, out.size() * sizeof(T));
        return out;
    }

  private:
    sqlite3_stmt* s_;
};

class Reader {
  public:
    static Result<Reader> open(const std::filesystem::path& file) {
        sqlite3* db = nullptr;
        const int code = sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
        Reader reader(file, db);
        if (code != SQLITE_OK) return reader.fault();
        return reader;
    }
    Result<> each(const std::string& sql, const std::function<void(const Row&)>& take) const {
        sqlite3_stmt* s = nullptr;
        if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &s, nullptr) != SQLITE_OK) return fault();
        int code;
        while ((code = sqlite3_step(s)) == SQLITE_ROW) take(Row(s));
        sqlite3_finalize(s);
        if (code != SQLITE_DONE) return fault();
        return {};
    }

  private:
    Reader(std::filesystem::path file, sqlite3* db) : file_(std::move(file)), db_(db, sqlite3_close) {}
    Failure fault() const { return fail("cannot read " + file_.string() + ": " + sqlite3_errmsg(db_.get())); }

    std::filesystem::path file_;
    std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_;
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

Result<> read_requests(const Reader& db, const std::string& of_run, RunRecord& run) {
    return db.each("SELECT arrival_ns, first_scheduled_ns, finish_ns, token_ns, output_ids, prompt_tokens, "
                   "cached_tokens, preemptions, deadline_ns, tenant, priority, finish_reason, error, class, other_ids "
                   "FROM request" + of_run + " ORDER BY number",
                   [&](const Row& row) {
                       RequestRecord r;
                       r.arrival_ns = row.integer(0);
                       r.first_scheduled_ns = row.integer(1);
                       r.finish_ns = row.integer(2);
                       r.token_ns = row.array<uint64_t>(3);
                       r.output = row.array<engine::TokenId>(4);
                       r.prompt_tokens = static_cast<uint32_t>(row.integer(5));
                       r.cached_tokens = static_cast<uint32_t>(row.integer(6));
                       r.preemptions = static_cast<uint32_t>(row.integer(7));
                       r.deadline_ns = row.integer(8);
                       r.tenant = static_cast<uint32_t>(row.integer(9));
                       r.priority = static_cast<int32_t>(row.integer(10));
                       r.finish = finish_reason(row.text(11));
                       r.error = row.text(12);
                       r.label = row.text(13);
                       r.others = parted(row.array<engine::TokenId>(14));
                       run.requests.push_back(std::move(r));
                   });
}

Result<> read_swaps(const Reader& db, const std::string& of_run, RunRecord& run) {
    return db.each("SELECT task, kind, state, step, time_ns, pause_ns FROM swap" + of_run + " ORDER BY number",
                   [&](const Row& row) {
                       SwapOutcome swap;
                       swap.task = row.text(0);
                       swap.record.kind = row.text(1);
                       swap.record.state = swap_state(row.text(2));
                       swap.record.step = row.integer(3);
                       swap.record.time_ns = row.integer(4);
                       swap.record.pause_ns = row.integer(5);
                       run.swaps.push_back(std::move(swap));
                   });
}

// The bytes of a plugin are what matters; it may be found by another path.
nlohmann::json without_paths(const std::string& plugins_json) {
    auto plugins = nlohmann::json::parse(plugins_json, nullptr, false);
    for (auto& plugin : plugins)
        if (plugin.is_object()) plugin.erase("path");
    return plugins;
}

Result<> check_program(const Reader& db, const std::string& now) {
    std::string then;
    PB_CHECK(db.each("SELECT program_sha256 FROM experiment", [&](const Row& row) { then = row.text(0); }));
    if (then == now) return {};
    return invalid("the experiment was begun by another build of patchbay, with the SHA-256 " + then.substr(0, 12) +
                   "…, and this one is " + now.substr(0, 12) + "… (run the experiment anew)");
}

Result<> check_inputs(const Reader& db, const std::vector<InputFile>& now) {
    std::string changed;
    PB_CHECK(db.each("SELECT path, sha256 FROM input", [&](const Row& row) {
        if (std::ranges::find(now, row.text(1), &InputFile::sha256) == now.end()) changed = row.text(0);
    }));
    if (changed.empty()) return {};
    return invalid(changed + " is no longer what it was when the experiment began (run the experiment anew)");
}

Result<> check_variants(const Reader& db, const std::vector<VariantRow>& variants) {
    std::string different;
    size_t count = 0;
    PB_CHECK(db.each("SELECT name, patch_yaml, facts_json, plugins_json FROM variant ORDER BY id", [&](const Row& row) {
        const VariantRow* const now = count < variants.size() ? &variants[count] : nullptr;
        count += 1;
        const bool same = now && now->name == row.text(0) && now->facts_json == row.text(2) &&
                          without_paths(now->plugins_json) == without_paths(row.text(3));
        if (!same && different.empty()) different = row.text(0);
    }));
    if (count != variants.size()) return invalid("the record is of " + std::to_string(count) + " variants");
    if (different.empty()) return {};
    return invalid("variant '" + different + "' is no longer what it was when the experiment began: its model, "
                   "plugins, or what was chosen for this machine changed (run the experiment anew)");
}

}  // namespace

Result<RecordedSpec> recorded_spec(const std::filesystem::path& database) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(database, error))
        return not_found(database.string() + " is not there; expected a folder of results that were interrupted");
    PB_TRY(const Reader db, Reader::open(database));
    uint64_t version = 0;
    PB_CHECK(db.each("PRAGMA user_version", [&](const Row& row) { version = row.integer(0); }));
    if (version != kResultsVersion)
        return unsupported(database.string() + " has tables of version " + std::to_string(version) + ", expected " +
                           std::to_string(kResultsVersion) + ": another version of patchbay made it");
    RecordedSpec spec;
    std::string end;
    PB_CHECK(db.each("SELECT name, spec_yaml, end FROM experiment", [&](const Row& row) {
        spec = {row.text(0), row.text(1)};
        end = row.text(2);
    }));
    if (end == "complete")
        return invalid(database.string() + ": the experiment is complete, there is nothing to resume");
    return spec;
}

Result<std::vector<RunSummary>> recorded_runs(const std::filesystem::path& database, const ExperimentRow& experiment,
                                              const std::vector<VariantRow>& variants, const Counting& counting) {
    PB_TRY(const Reader db, Reader::open(database));
    PB_CHECK(check_variants(db, variants));
    PB_CHECK(check_inputs(db, experiment.inputs));
    PB_CHECK(check_program(db, experiment.machine.program_sha256));
    struct Run {
        RunRecord record;
        uint64_t id;
        bool superseded;
    };
    std::vector<Run> runs;
    PB_CHECK(db.each("SELECT variant_id, repeat, position, started, duration_ns, end, reason, id, attempt, superseded, "
                     "steal_share + others_share FROM run WHERE end NOT IN ('interrupted', 'running') "
                     "ORDER BY position, attempt",
                     [&](const Row& row) {
                         auto& [run, id, superseded] = runs.emplace_back();
                         run.variant = row.integer(0);
                         run.repeat = static_cast<uint32_t>(row.integer(1));
                         run.position = static_cast<uint32_t>(row.integer(2));
                         run.started = row.text(3);
                         run.duration_ns = row.integer(4);
                         run.end = row.text(5) == "complete" ? RunEnd::kComplete : RunEnd::kFailed;
                         run.faults = faults_in(row.text(6));
                         id = row.integer(7);
                         run.attempt = static_cast<uint32_t>(row.integer(8));
                         superseded = row.integer(9) != 0;
                         if (const auto share = row.real(10)) run.cpu_use = CpuUse{.others = *share};
                     }));
    std::vector<RunSummary> out;
    for (Run& recorded : runs) { // one at a time, as all requests together may not fit in memory
        RunRecord& run = recorded.record;
        const std::string of_run = " WHERE run_id = " + std::to_string(recorded.id);
        PB_CHECK(read_requests(db, of_run, run));
        PB_CHECK(read_swaps(db, of_run, run));
        PB_CHECK(db.each("SELECT name, value FROM run_metric" + of_run, [&](const Row& row) {
            run.numbers.push_back({row.text(0), row.real(1).value_or(kNoValue)});
        }));
        out.push_back(summary_of(run, counting));
        out.back().superseded = recorded.superseded;
        run.requests = std::vector<RequestRecord>();
    }
    PB_CHECK(db.each("SELECT variant_id, repeat, position, attempt, rate, objective_share, end, reason, superseded, "
                     "steal_share + others_share FROM capacity_run WHERE end <> 'interrupted'",
                     [&](const Row& row) {
                         RunSummary& run = out.emplace_back();
                         run.variant = row.integer(0);
                         run.repeat = static_cast<uint32_t>(row.integer(1));
                         run.position = static_cast<uint32_t>(row.integer(2));
                         run.attempt = static_cast<uint32_t>(row.integer(3));
                         run.rate = row.real(4);
                         run.objective = row.real(5);
                         run.end = row.text(6) == "complete" ? RunEnd::kComplete : RunEnd::kFailed;
                         run.faults = faults_in(row.text(7));
                         run.superseded = row.integer(8) != 0;
                         run.others_share = row.real(9).value_or(0);
                     }));
    return out;
}

}  // namespace patchbay::experiment
