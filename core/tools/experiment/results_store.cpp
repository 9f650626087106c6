#include "experiment/results_store.hpp"

#include <algorithm>
#include <functional>

#include "experiment/sqlite.hpp"

namespace patchbay::experiment {
namespace {

constexpr const char* kSchema = R"(
CREATE TABLE experiment(
    name TEXT, question TEXT, spec_file TEXT, spec_yaml TEXT, command TEXT, started TEXT, end TEXT, seed TEXT,
    repeats INTEGER, warmup_requests INTEGER, baseline TEXT, winner TEXT, conclusion TEXT, counted TEXT,
    workload_yaml TEXT,
    slo_ttft_ms REAL, slo_tpot_ms REAL, slo_e2e_ms REAL, version TEXT, build TEXT, git_commit TEXT, cpu TEXT,
    cores INTEGER, memory_bytes INTEGER, os TEXT, kernel TEXT, git_changes INTEGER, program_sha256 TEXT,
    capacity_share REAL);
CREATE TABLE input(path TEXT, sha256 TEXT);
CREATE TABLE notice(text TEXT);
CREATE TABLE variant(
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, is_baseline INTEGER, patch_yaml TEXT, effective_yaml TEXT,
    facts_json TEXT, plugins_json TEXT);
CREATE TABLE difference(
    variant_id INTEGER REFERENCES variant(id), path TEXT, baseline_value TEXT, value TEXT, declared INTEGER);
CREATE TABLE factor(variant_id INTEGER REFERENCES variant(id), path TEXT, value TEXT);
CREATE TABLE run(
    id INTEGER PRIMARY KEY, variant_id INTEGER REFERENCES variant(id), repeat INTEGER, position INTEGER,
    attempt INTEGER, seed TEXT, started TEXT, duration_ns INTEGER, end TEXT, valid INTEGER, superseded INTEGER,
    reason TEXT, steal_share REAL, others_share REAL, load_average REAL, mhz REAL);
CREATE TABLE run_metric(
    run_id INTEGER REFERENCES run(id), name TEXT, value REAL, PRIMARY KEY(run_id, name)) WITHOUT ROWID;
CREATE TABLE capacity_run(
    variant_id INTEGER REFERENCES variant(id), repeat INTEGER, position INTEGER, attempt INTEGER, rate REAL,
    objective_share REAL, kept INTEGER, started TEXT, duration_ns INTEGER, end TEXT, valid INTEGER, superseded INTEGER,
    reason TEXT, steal_share REAL, others_share REAL, load_average REAL, mhz REAL, PRIMARY KEY(position, attempt));
CREATE TABLE request(
    run_id INTEGER REFERENCES run(id), number INTEGER, arrival_ns INTEGER, first_scheduled_ns INTEGER,
    first_token_ns INTEGER, finish_ns INTEGER, prompt_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER,
    preemptions INTEGER, finish_reason TEXT, error TEXT, token_ns BLOB, output_ids BLOB,
    tenant INTEGER, priority INTEGER, deadline_ns INTEGER, class TEXT, counted INTEGER, other_ids BLOB,
    PRIMARY KEY(run_id, number)) WITHOUT ROWID;
CREATE TABLE step(
    run_id INTEGER REFERENCES run(id), step INTEGER, start_ns INTEGER, end_ns INTEGER, admit_ns INTEGER,
    plan_phase_ns INTEGER, apply_ns INTEGER, build_ns INTEGER, run_ns INTEGER, sample_phase_ns INTEGER,
    commit_ns INTEGER, publish_ns INTEGER, scheduled_seqs INTEGER, scheduled_tokens INTEGER, prefill_tokens INTEGER,
    decode_tokens INTEGER, sampled_tokens INTEGER, admitted INTEGER, finished INTEGER, trimmed INTEGER,
    running_requests INTEGER, waiting_requests INTEGER, waiting_tokens INTEGER, oldest_wait_ns INTEGER,
    preemptions INTEGER, preempted_tokens INTEGER, total_pages INTEGER, used_pages INTEGER, cached_pages INTEGER,
    prefix_query_tokens INTEGER, prefix_hit_tokens INTEGER, evicted_pages INTEGER, drafted_tokens INTEGER,
    accepted_tokens INTEGER, token_slots INTEGER, empty_slots INTEGER, plan_ns INTEGER, sample_ns INTEGER,
    propose_ns INTEGER, kv_policy_ns INTEGER, forward_ns INTEGER, attention_ns INTEGER, device_ns INTEGER,
    sampler_faults INTEGER, plan_faults INTEGER, proposer_faults INTEGER, kv_policy_faults INTEGER,
    graph_replayed INTEGER, graph_miss TEXT, graph_size INTEGER, padded_tokens INTEGER,
    PRIMARY KEY(run_id, step)) WITHOUT ROWID;
CREATE TABLE swap(
    run_id INTEGER REFERENCES run(id), number INTEGER, task TEXT, kind TEXT, from_name TEXT, from_version TEXT,
    from_sha256 TEXT, to_name TEXT, to_version TEXT, to_sha256 TEXT, state TEXT, phase TEXT, reason TEXT,
    step INTEGER, time_ns INTEGER, pause_ns INTEGER, end_step INTEGER, PRIMARY KEY(run_id, number)) WITHOUT ROWID;
CREATE TABLE metric(
    variant_id INTEGER REFERENCES variant(id), position INTEGER, name TEXT, label TEXT, unit TEXT, better TEXT,
    primary_rank INTEGER, value REAL, difference REAL, low REAL, high REAL, verdict TEXT, scale TEXT, p REAL,
    p_corrected REAL, detectable REAL, bound TEXT);
CREATE TABLE by_class(
    variant_id INTEGER REFERENCES variant(id), kind TEXT, class TEXT, class_position INTEGER, requests INTEGER,
    position INTEGER, name TEXT, label TEXT, unit TEXT, better TEXT, value REAL, difference REAL, low REAL, high REAL,
    scale TEXT);
CREATE TABLE quality(
    variant_id INTEGER REFERENCES variant(id), predicted_tokens INTEGER, perplexity REAL, ratio REAL, low REAL,
    high REAL, same_choice REAL, outputs INTEGER, same_outputs REAL, same_tokens REAL);
CREATE TABLE comparison(
    variant_id INTEGER REFERENCES variant(id), pairs INTEGER, repeats INTEGER, independent INTEGER, same_output REAL);
PRAGMA user_version = 6;
)";

constexpr const char* kUnfinish = R"(
UPDATE experiment SET end = 'running', winner = NULL, conclusion = NULL;
DELETE FROM notice; DELETE FROM metric; DELETE FROM by_class; DELETE FROM comparison; DELETE FROM quality;
DELETE FROM request WHERE run_id IN (SELECT id FROM run WHERE end IN ('interrupted', 'running'));
DELETE FROM step WHERE run_id IN (SELECT id FROM run WHERE end IN ('interrupted', 'running'));
DELETE FROM run_metric WHERE run_id IN (SELECT id FROM run WHERE end IN ('interrupted', 'running'));
DELETE FROM swap WHERE run_id IN (SELECT id FROM run WHERE end IN ('interrupted', 'running'));
DELETE FROM run WHERE end IN ('interrupted', 'running');
DELETE FROM capacity_run WHERE end = 'interrupted';
)";

std::string insert_into(const char* table, int columns) {
    std::string sql = std::string("INSERT INTO ") + table + " VALUES(";
    for (int i = 0; i < columns; ++i) sql += i ? ",?" : "?";
    return sql + ")";
}

const char* word_of(RunEnd end) {
    return end == RunEnd::kComplete ? "complete" : end == RunEnd::kInterrupted ? "interrupted" : "failed";
}

const char* word_of(Better better) {
    return better == Better::kHigher ? "higher" : better == Better::kLower ? "lower" : "neither";
}

// Outputs 1, 2, … of a request: of each the number of its tokens, then these.
std::vector<engine::TokenId> concatenated(const std::vector<std::vector<engine::TokenId>>& outputs) {
    std::vector<engine::TokenId> out;
    for (const auto& tokens : outputs) {
        out.push_back(static_cast<engine::TokenId>(tokens.size()));
        out.insert(out.end(), tokens.begin(), tokens.end());
    }
    return out;
}

std::string text_of(const std::vector<std::string>& faults) {
    std::string out;
    for (const std::string& fault : faults) out += (out.empty() ? "" : "; ") + fault;
    return out;
}

// steal, others, load average and clock
std::array<double, 4> numbers_of(const std::optional<CpuUse>& use) {
    if (!use) return {kNoValue, kNoValue, kNoValue, kNoValue};
    return {use->steal, use->others, use->load_average, use->mhz.value_or(kNoValue)};
}

template <class T>
std::optional<T> only_if(bool condition, T value) {
    return condition ? std::optional<T>(std::move(value)) : std::nullopt;
}

Result<> insert_request(Statement& s, uint64_t run, size_t number, const RequestRecord& r) {
    const bool has_tokens = !r.token_ns.empty();
    return s.run(run, number, r.arrival_ns, only_if(r.first_scheduled_ns > 0 || has_tokens, r.first_scheduled_ns),
                 only_if(has_tokens, has_tokens ? r.token_ns.front() : 0), only_if(r.finish_ns > 0, r.finish_ns),
                 r.prompt_tokens, r.output_tokens(), r.cached_tokens, r.preemptions, engine::name_of(r.finish), r.error,
                 r.token_ns, r.output, r.tenant, r.priority, only_if(r.deadline_ns > 0, r.deadline_ns), r.label, 1,
                 only_if(!r.others.empty(), concatenated(r.others)));
}

Result<> insert_step(Statement& s, uint64_t run, const engine::StepReport& r) {
    const engine::ScheduledWork& work = r.work;
    const engine::CallReport& calls = r.calls;
    const runner::CallTimes& forward = calls.forward;
    return s.run(run, r.step, r.start_ns, r.end_ns, r.phase_ns,
                 work.scheduled_seqs, work.scheduled_tokens, work.prefill_tokens, work.decode_tokens,
                 work.sampled_tokens, work.admitted, work.finished, work.trimmed,
                 r.queues.running_requests, r.queues.waiting_requests, r.queues.waiting_tokens, r.queues.oldest_wait_ns,
                 r.preemption.preemptions, r.preemption.preempted_tokens,
                 r.kv.total_pages, r.kv.used_pages, r.kv.cached_pages, r.kv.prefix_query_tokens,
                 r.kv.prefix_hit_tokens, r.kv.evicted_pages, r.drafts.drafted_tokens, r.drafts.accepted_tokens,
                 r.kv.token_slots, r.kv.empty_slots,
                 calls.plan_ns, calls.sample_ns, calls.propose_ns, calls.kv_update_ns + calls.kv_choose_ns,
                 forward.model_forward, forward.attention_plan + forward.attention_append + forward.attention_run,
                 forward.device_begin + forward.device_launch + forward.device_end,
                 calls.sampler_faults, calls.plan_faults, calls.proposer_faults, calls.kv_policy_faults,
                 r.graph.replayed, r.graph.miss, r.graph.size, r.graph.padded_tokens);
}

Result<> insert_swap(Statement& s, uint64_t run, size_t number, const SwapOutcome& swap) {
    const host::SwapRecord& r = swap.record;
    const bool began = r.step > 0;
    return s.run(run, number, swap.task, r.kind, r.from.name, r.from.version, r.from.sha256, r.to.name, r.to.version,
                 r.to.sha256, host::name_of(r.state), r.phase, r.reason, only_if(began, r.step),
                 only_if(began, r.time_ns), only_if(began, r.pause_ns), only_if(r.end_step > 0, r.end_step));
}

}  // namespace

struct ResultsStore::Database {
    const ResultsLock lock;
    const std::filesystem::path file = lock.folder() / kResultsFile;
    sqlite3* handle = nullptr;
    explicit Database(ResultsLock of) : lock(std::move(of)) {}
    ~Database() { sqlite3_close(handle); }

    Result<> execute(const char* sql) {
        if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return fail(error_of(handle));
        return {};
    }
    template <class... T>
    Result<> change(const std::string& sql, const T&... values) { // by one statement
        return transaction([&] { return Statement(handle, sql).run(values...); });
    }
    Result<> transaction(const std::function<Result<>()>& body) {
        const auto place = [&](const Result<>& r) { return prefixed("cannot write " + file.string(), r.failure()); };
        if (auto begun = execute("BEGIN IMMEDIATE"); !begun) return place(begun);
        Result<> done = body();
        if (done) done = execute("COMMIT");
        if (done) return {};
        (void)execute("ROLLBACK"); // may have happened already
        return place(done);
    }
};

ResultsStore::ResultsStore(std::unique_ptr<Database> db) : db_(std::move(db)) {}
ResultsStore::~ResultsStore() = default;
ResultsStore::ResultsStore(ResultsStore&&) noexcept = default;

Result<ResultsStore> ResultsStore::create(ResultsLock lock, uint64_t max_bytes) {
    constexpr uint64_t kPage = 4096;
    auto db = std::make_unique<Database>(std::move(lock));
    const std::filesystem::path& file = db->file;
    if (sqlite3_open_v2(file.c_str(), &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK)
        return fail("cannot create " + file.string() + ": " + error_of(db->handle));
    // The log makes commits cheap; what a crash of the machine may lose is the last run, never the file.
    std::string settings = "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
    if (max_bytes > 0) settings += "PRAGMA max_page_count = " + std::to_string(max_bytes / kPage);
    if (auto done = db->execute(settings.c_str()); !done)
        return prefixed("cannot create " + file.string(), done.failure());
    PB_CHECK(db->transaction([&] { return db->execute(kSchema); }));
    return ResultsStore(std::move(db));
}

Result<ResultsStore> ResultsStore::resume(ResultsLock lock) {
    auto db = std::make_unique<Database>(std::move(lock));
    const std::filesystem::path& file = db->file;
    if (sqlite3_open_v2(file.c_str(), &db->handle, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK)
        return fail("cannot open " + file.string() + ": " + error_of(db->handle));
    if (auto done = db->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"); !done)
        return prefixed("cannot write " + file.string(), done.failure());
    PB_CHECK(db->transaction([&] { return db->execute(kUnfinish); }));
    return ResultsStore(std::move(db));
}

Result<> ResultsStore::add_experiment(const ExperimentRow& e, const std::vector<VariantRow>& variants) {
    return db_->transaction([&]() -> Result<> {
        Statement s(db_->handle, insert_into("experiment", 29));
        const std::nullopt_t winner = std::nullopt, conclusion = std::nullopt, counted = std::nullopt; // until its end
        PB_CHECK(s.run(e.name, e.question, e.spec_file, e.spec_yaml, e.command, e.started, "running",
                       std::to_string(e.seed), e.repeats, e.warmup_requests, e.baseline, winner, conclusion, counted,
                       e.workload_yaml, e.slo.ttft_ms, e.slo.tpot_ms, e.slo.e2e_ms, e.version, e.machine.build,
                       e.built_from.commit, e.machine.cpu, e.machine.cores, e.machine.memory_bytes, e.machine.os,
                       e.machine.kernel, e.built_from.has_changes, e.machine.program_sha256, e.capacity_share));
        Statement i(db_->handle, insert_into("input", 2));
        for (const InputFile& file : e.inputs) PB_CHECK(i.run(file.path, file.sha256));
        Statement v(db_->handle, insert_into("variant", 7)), d(db_->handle, insert_into("difference", 5));
        Statement f(db_->handle, insert_into("factor", 3));
        for (size_t number = 0; number < variants.size(); ++number) {
            const VariantRow& row = variants[number];
            PB_CHECK(v.run(number, row.name, row.name == e.baseline, row.patch_yaml, row.effective_yaml, row.facts_json,
                           row.plugins_json));
            for (const auto& [path, value] : row.factors) PB_CHECK(f.run(number, path, value));
            for (const ConfigDifference& c : row.differences)
                PB_CHECK(d.run(number, c.path, c.baseline, c.value, c.declared));
        }
        return {};
    });
}

Result<uint64_t> ResultsStore::begin_run(const RunRecord& run, uint64_t seed) {
    constexpr uint64_t kSecondAttempts = 1'000'000; // beyond all positions
    const uint64_t id = run.position + run.attempt * kSecondAttempts;
    PB_CHECK(db_->change(
        "INSERT INTO run(id, variant_id, repeat, position, attempt, seed, started, end, valid, superseded) "
        "VALUES(?, ?, ?, ?, ?, ?, ?, 'running', 0, 0)",
        id, run.variant, run.repeat, run.position, run.attempt, std::to_string(seed), run.started));
    return id;
}

Result<> ResultsStore::add_rows(uint64_t run, const Rows& rows) {
    return db_->transaction([&]() -> Result<> {
        Statement request(db_->handle, insert_into("request", 20)), step(db_->handle, insert_into("step", 51));
        for (const NumberedRequest& r : rows.requests) PB_CHECK(insert_request(request, run, r.number, r.request));
        for (const engine::StepReport& r : rows.steps) PB_CHECK(insert_step(step, run, r));
        return {};
    });
}

Result<> ResultsStore::end_run(uint64_t id, const RunRecord& run, const RunSummary& summary,
                               const std::optional<TimeSpan>& counted) {
    return db_->transaction([&]() -> Result<> {
        Statement s(db_->handle, "UPDATE run SET started = ?, duration_ns = ?, end = ?, valid = ?, reason = ?, "
                                 "steal_share = ?, others_share = ?, load_average = ?, "
                                 "mhz = ? WHERE id = ?");
        PB_CHECK(s.run(run.started, run.duration_ns, word_of(run.end), run.valid(), text_of(run.faults),
                       numbers_of(run.cpu_use), id));
        if (counted) {
            Statement c(db_->handle, "UPDATE request SET counted = arrival_ns BETWEEN ? AND ? WHERE run_id = ?");
            PB_CHECK(c.run(counted->from_ns, counted->until_ns, id));
        }
        Statement m(db_->handle, insert_into("run_metric", 3));
        for (size_t i = 0; i < summary.metrics.size(); ++i)
            if (!std::isnan(summary.metrics[i]))
                PB_CHECK(m.run(id, metric_infos()[i].name, summary.metrics[i]));
        for (const NamedNumber& n : summary.of_plugins) PB_CHECK(m.run(id, n.name, n.value));
        Statement swap(db_->handle, insert_into("swap", 17));
        for (size_t i = 0; i < run.swaps.size(); ++i) PB_CHECK(insert_swap(swap, id, i, run.swaps[i]));
        return {};
    });
}

Result<> ResultsStore::supersede(const RunSummary& run) {
    const std::string table = run.rate ? "capacity_run" : "run";
    return db_->change("UPDATE " + table +
                           " SET superseded = 1, valid = 0, reason = ? WHERE position = ? AND attempt = ?",
                       text_of(run.faults), run.position, run.attempt);
}

Result<> ResultsStore::add_capacity_run(const RunRecord& run, const RunSummary& summary, bool kept) {
    return db_->change(insert_into("capacity_run", 17), run.variant, run.repeat, run.position, run.attempt, run.rate,
                       summary.objective, kept, run.started, run.duration_ns, word_of(run.end), run.valid(), 0,
                       text_of(run.faults), numbers_of(run.cpu_use));
}

Result<> ResultsStore::set_repeats(uint32_t repeats) {
    return db_->change("UPDATE experiment SET repeats = ?", repeats);
}

namespace {

std::optional<std::string_view> scale_of(const Difference& d) {
    return only_if<std::string_view>(!std::isnan(d.value), d.is_ratio ? "ratio" : "difference");
}

Result<> insert_metrics(sqlite3* db, const Conclusion& conclusion) {
    Statement m(db, insert_into("metric", 17));
    const MetricList& infos = conclusion.list;
    for (size_t v = 0; v < conclusion.results.size(); ++v) {
        const VariantResult& r = conclusion.results[v];
        const bool compared = !r.comparison.metrics.empty();
        for (size_t i = 0; i < r.metrics.size(); ++i) {
            Difference d{.verdict = Verdict::kBaseline};
            if (compared) d = r.comparison.metrics[i];
            const auto rank = std::ranges::find(conclusion.primary, i);
            PB_CHECK(m.run(v, i, infos[i].name, infos[i].label, infos[i].unit, word_of(infos[i].better),
                           only_if(rank != conclusion.primary.end(), rank - conclusion.primary.begin() + 1),
                           r.metrics[i], d.value, d.low, d.high, experiment::word_of(d.verdict), scale_of(d), d.p,
                           d.corrected, d.detectable,
                           only_if<std::string_view>(r.bounds.contains(i), "at least")));
        }
    }
    return {};
}

Result<> insert_classes(sqlite3* db, const Conclusion& conclusion) {
    Statement s(db, insert_into("by_class", 15));
    const MetricList& infos = conclusion.list;
    for (size_t k = 0; k < conclusion.classes.size(); ++k) {
        const ClassResults& c = conclusion.classes[k];
        for (size_t v = 0; v < c.results.size(); ++v)
            for (size_t i = 0; i < c.results[v].metrics.size(); ++i) {
                if (std::isnan(c.results[v].metrics[i])) continue;
                Difference d;
                if (!c.results[v].comparison.metrics.empty()) d = c.results[v].comparison.metrics[i];
                PB_CHECK(s.run(v, c.by, c.name, k, c.requests[v], i, infos[i].name, infos[i].label, infos[i].unit,
                               word_of(infos[i].better), c.results[v].metrics[i], d.value, d.low, d.high,
                               scale_of(d)));
            }
    }
    return {};
}

Result<> insert_quality(sqlite3* db, const std::vector<QualityResult>& quality) {
    Statement s(db, insert_into("quality", 10));
    for (size_t v = 0; v < quality.size(); ++v) {
        const QualityResult& q = quality[v];
        PB_CHECK(s.run(v, q.predicted, q.perplexity, q.ratio, q.interval.low, q.interval.high, q.same_choice, q.outputs,
                       q.same_outputs, q.same_tokens));
    }
    return {};
}

}  // namespace

Result<> ResultsStore::finish(const Conclusion& conclusion, const std::string& end) {
    const auto write = [&]() -> Result<> {
        Statement e(db_->handle, "UPDATE experiment SET winner = ?, conclusion = ?, counted = ?, end = ?");
        PB_CHECK(e.run(conclusion.winner, conclusion.sentence, conclusion.counted, end));
        Statement n(db_->handle, insert_into("notice", 1)), c(db_->handle, insert_into("comparison", 5));
        for (const std::string& notice : conclusion.notices) PB_CHECK(n.run(notice));
        PB_CHECK(insert_metrics(db_->handle, conclusion));
        PB_CHECK(insert_classes(db_->handle, conclusion));
        PB_CHECK(insert_quality(db_->handle, conclusion.quality));
        for (size_t v = 0; v < conclusion.results.size(); ++v) {
            const Comparison& compared = conclusion.results[v].comparison;
            if (compared.metrics.empty()) continue;
            PB_CHECK(c.run(v, compared.pairs, compared.repeats, compared.independent, compared.same_output));
        }
        return {};
    };
    PB_CHECK(db_->transaction(write));
    // One file, without a log beside it, for people to copy. While another program reads it the log stays.
    auto done = db_->execute("PRAGMA journal_mode = DELETE");
    if (!done && (sqlite3_errcode(db_->handle) & 0xFF) != SQLITE_BUSY &&
        (sqlite3_errcode(db_->handle) & 0xFF) != SQLITE_LOCKED)
        return prefixed("cannot write " + db_->file.string(), done.failure());
    return {};
}

}  // namespace patchbay::experiment
