#include "experiment/results_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

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
    p_corrected REAL, detectable REAL);
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

// What SQLite says, and what the system said to it: "disk I/O error (File too large)".
std::string error_of(sqlite3* db) {
    std::string text = sqlite3_errmsg(db);
    const int code = sqlite3_errcode(db) & 0xFF, system = sqlite3_system_errno(db);
    if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && system != 0)
        text += std::string(" (") + std::strerror(system) + ")";
    return text;
}

// A statement and its parameters in order; NaN is NULL, an empty optional text too.
class Statement {
  public:
    Statement(sqlite3* db, const std::string& sql) : db_(db) {
        if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& integer(uint64_t v) {
        sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(v));
        return *this;
    }
    Statement& real(double v) {
        if (std::isnan(v)) sqlite3_bind_null(statement_, ++bound_);
        else sqlite3_bind_double(statement_, ++bound_, v);
        return *this;
    }
    Statement& text(std::string_view v) {
        sqlite3_bind_text(statement_, ++bound_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT);
        return *this;
    }
    template <class T>
    Statement& blob(const std::vector<T>& v) { // little-endian, as every machine that this runs on
        const void* bytes = v.empty() ? "" : static_cast<const void*>(v.data());
        sqlite3_bind_blob64(statement_, ++bound_, bytes, v.size() * sizeof(T), SQLITE_TRANSIENT);
        return *this;
    }
    Statement& null() {
        sqlite3_bind_null(statement_, ++bound_);
        return *this;
    }
    Result<> run() {
        const bool done = statement_ && sqlite3_step(statement_) == SQLITE_DONE;
        sqlite3_reset(statement_);
        bound_ = 0;
        if (!done) return fail(error_of(db_));
        return {};
    }

  private:
    sqlite3* db_;
    sqlite3_stmt* statement_ = nullptr;
    int bound_ = 0;
};

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

void bind(Statement& s, const std::optional<CpuUse>& use) {
    s.real(use ? use->steal : kNoValue).real(use ? use->others : kNoValue);
    s.real(use ? use->load_average : kNoValue).real(use && use->mhz ? *use->mhz : kNoValue);
}

Result<> insert_request(Statement& s, uint64_t run, size_t number, const RequestRecord& r) {
    s.integer(run).integer(number).integer(r.arrival_ns);
    const bool ran = r.first_scheduled_ns > 0 || !r.token_ns.empty();
    ran ? s.integer(r.first_scheduled_ns) : s.null();
    r.token_ns.empty() ? s.null() : s.integer(r.token_ns.front());
    r.finish_ns > 0 ? s.integer(r.finish_ns) : s.null();
    s.integer(r.prompt_tokens).integer(r.output_tokens()).integer(r.cached_tokens).integer(r.preemptions);
    s.text(engine::name_of(r.finish)).text(r.error).blob(r.token_ns).blob(r.output);
    s.integer(r.tenant).integer(static_cast<uint64_t>(r.priority));
    r.deadline_ns > 0 ? s.integer(r.deadline_ns) : s.null();
    s.text(r.label).integer(1);
    r.others.empty() ? s.null() : s.blob(concatenated(r.others));
    return s.run();
}

Result<> insert_step(Statement& s, uint64_t run, const engine::StepReport& r) {
    const engine::ScheduledWork& work = r.work;
    const engine::CallReport& calls = r.calls;
    s.integer(run).integer(r.step).integer(r.start_ns).integer(r.end_ns);
    for (const uint64_t phase : r.phase_ns) s.integer(phase);
    for (const uint32_t v : {work.scheduled_seqs, work.scheduled_tokens, work.prefill_tokens, work.decode_tokens,
                             work.sampled_tokens, work.admitted, work.finished, work.trimmed,
                             r.queues.running_requests, r.queues.waiting_requests})
        s.integer(v);
    s.integer(r.queues.waiting_tokens).integer(r.queues.oldest_wait_ns);
    s.integer(r.preemption.preemptions).integer(r.preemption.preempted_tokens);
    s.integer(r.kv.total_pages).integer(r.kv.used_pages).integer(r.kv.cached_pages);
    s.integer(r.kv.prefix_query_tokens).integer(r.kv.prefix_hit_tokens).integer(r.kv.evicted_pages);
    s.integer(r.drafts.drafted_tokens).integer(r.drafts.accepted_tokens);
    s.integer(r.kv.token_slots).integer(r.kv.empty_slots);
    s.integer(calls.plan_ns).integer(calls.sample_ns).integer(calls.propose_ns);
    s.integer(calls.kv_update_ns + calls.kv_choose_ns);
    s.integer(calls.forward.model_forward);
    s.integer(calls.forward.attention_plan + calls.forward.attention_append + calls.forward.attention_run);
    s.integer(calls.forward.device_begin + calls.forward.device_launch + calls.forward.device_end);
    s.integer(calls.sampler_faults).integer(calls.plan_faults).integer(calls.proposer_faults);
    s.integer(calls.kv_policy_faults);
    s.integer(r.graph.replayed).text(r.graph.miss).integer(r.graph.size).integer(r.graph.padded_tokens);
    return s.run();
}

Result<> insert_swap(Statement& s, uint64_t run, size_t number, const SwapOutcome& swap) {
    const host::SwapRecord& r = swap.record;
    s.integer(run).integer(number).text(swap.task).text(r.kind);
    for (const host::Identity* p : {&r.from, &r.to}) s.text(p->name).text(p->version).text(p->sha256);
    s.text(host::name_of(r.state)).text(r.phase).text(r.reason);
    for (const uint64_t v : {r.step, r.time_ns, r.pause_ns}) r.step > 0 ? s.integer(v) : s.null();
    r.end_step > 0 ? s.integer(r.end_step) : s.null();
    return s.run();
}

}  // namespace

struct ResultsStore::Database {
    sqlite3* handle = nullptr;
    std::filesystem::path file;
    ~Database() { sqlite3_close(handle); }

    Result<> execute(const char* sql) {
        if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return fail(error_of(handle));
        return {};
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

Result<ResultsStore> ResultsStore::create(const std::filesystem::path& file, uint64_t max_bytes) {
    constexpr uint64_t kPage = 4096;
    auto db = std::make_unique<Database>();
    db->file = file;
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

Result<ResultsStore> ResultsStore::resume(const std::filesystem::path& file) {
    auto db = std::make_unique<Database>();
    db->file = file;
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
        s.text(e.name).text(e.question).text(e.spec_file).text(e.spec_yaml);
        s.text(e.command).text(e.started).text("running");
        s.text(std::to_string(e.seed)).integer(e.repeats).integer(e.warmup_requests);
        s.text(e.baseline).null().null().null();
        s.text(e.workload_yaml);
        for (const auto& bound : {e.slo.ttft_ms, e.slo.tpot_ms, e.slo.e2e_ms}) s.real(bound.value_or(kNoValue));
        s.text(e.version).text(e.machine.build).text(e.built_from.commit).text(e.machine.cpu);
        s.integer(e.machine.cores).integer(e.machine.memory_bytes).text(e.machine.os).text(e.machine.kernel);
        s.integer(e.built_from.has_changes).text(e.machine.program_sha256);
        PB_CHECK(s.real(e.capacity_share.value_or(kNoValue)).run());
        Statement i(db_->handle, insert_into("input", 2));
        for (const InputFile& file : e.inputs) PB_CHECK(i.text(file.path).text(file.sha256).run());
        Statement v(db_->handle, insert_into("variant", 7)), d(db_->handle, insert_into("difference", 5));
        Statement f(db_->handle, insert_into("factor", 3));
        for (size_t number = 0; number < variants.size(); ++number) {
            const VariantRow& row = variants[number];
            v.integer(number).text(row.name).integer(row.name == e.baseline);
            v.text(row.patch_yaml).text(row.effective_yaml);
            PB_CHECK(v.text(row.facts_json).text(row.plugins_json).run());
            for (const auto& [path, value] : row.factors) PB_CHECK(f.integer(number).text(path).text(value).run());
            for (const ConfigDifference& c : row.differences)
                PB_CHECK(d.integer(number).text(c.path).text(c.baseline).text(c.value).integer(c.declared).run());
        }
        return {};
    });
}

Result<uint64_t> ResultsStore::begin_run(const RunRecord& run, uint64_t seed) {
    constexpr uint64_t kSecondAttempts = 1'000'000; // beyond all positions
    const uint64_t id = run.position + run.attempt * kSecondAttempts;
    PB_CHECK(db_->transaction([&]() -> Result<> {
        Statement s(db_->handle,
                    "INSERT INTO run(id, variant_id, repeat, position, attempt, seed, started, end, valid, superseded) "
                    "VALUES(?, ?, ?, ?, ?, ?, ?, 'running', 0, 0)");
        s.integer(id).integer(run.variant).integer(run.repeat).integer(run.position).integer(run.attempt);
        return s.text(std::to_string(seed)).text(run.started).run();
    }));
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
        s.text(run.started).integer(run.duration_ns).text(word_of(run.end)).integer(run.valid());
        s.text(text_of(run.faults));
        bind(s, run.cpu_use);
        PB_CHECK(s.integer(id).run());
        if (counted) {
            Statement c(db_->handle, "UPDATE request SET counted = arrival_ns BETWEEN ? AND ? WHERE run_id = ?");
            PB_CHECK(c.integer(counted->from_ns).integer(counted->until_ns).integer(id).run());
        }
        Statement m(db_->handle, insert_into("run_metric", 3));
        for (size_t i = 0; i < summary.metrics.size(); ++i)
            if (!std::isnan(summary.metrics[i]))
                PB_CHECK(m.integer(id).text(metric_infos()[i].name).real(summary.metrics[i]).run());
        for (const NamedNumber& n : summary.of_plugins) PB_CHECK(m.integer(id).text(n.name).real(n.value).run());
        Statement swap(db_->handle, insert_into("swap", 17));
        for (size_t i = 0; i < run.swaps.size(); ++i) PB_CHECK(insert_swap(swap, id, i, run.swaps[i]));
        return {};
    });
}

Result<> ResultsStore::supersede(const RunSummary& run) {
    return db_->transaction([&]() -> Result<> {
        const std::string table = run.rate ? "capacity_run" : "run";
        Statement s(db_->handle,
                    "UPDATE " + table + " SET superseded = 1, valid = 0, reason = ? "
                                        "WHERE position = ? AND attempt = ?");
        return s.text(text_of(run.faults)).integer(run.position).integer(run.attempt).run();
    });
}

Result<> ResultsStore::add_capacity_run(const RunRecord& run, const RunSummary& summary, bool kept) {
    return db_->transaction([&]() -> Result<> {
        Statement s(db_->handle, insert_into("capacity_run", 17));
        s.integer(run.variant).integer(run.repeat).integer(run.position).integer(run.attempt);
        s.real(run.rate.value_or(kNoValue)).real(summary.objective.value_or(kNoValue)).integer(kept).text(run.started);
        s.integer(run.duration_ns).text(word_of(run.end)).integer(run.valid()).integer(0).text(text_of(run.faults));
        bind(s, run.cpu_use);
        return s.run();
    });
}

Result<> ResultsStore::set_repeats(uint32_t repeats) {
    return db_->transaction([&]() -> Result<> {
        Statement s(db_->handle, "UPDATE experiment SET repeats = ?");
        return s.integer(repeats).run();
    });
}

namespace {

Result<> insert_metrics(sqlite3* db, const Conclusion& conclusion) {
    Statement m(db, insert_into("metric", 16));
    const MetricList& infos = conclusion.list;
    for (size_t v = 0; v < conclusion.results.size(); ++v) {
        const VariantResult& r = conclusion.results[v];
        const bool compared = !r.comparison.metrics.empty();
        for (size_t i = 0; i < r.metrics.size(); ++i) {
            Difference d{.verdict = Verdict::kBaseline};
            if (compared) d = r.comparison.metrics[i];
            m.integer(v).integer(i).text(infos[i].name).text(infos[i].label).text(infos[i].unit);
            m.text(word_of(infos[i].better));
            const auto rank = std::find(conclusion.primary.begin(), conclusion.primary.end(), i);
            if (rank == conclusion.primary.end()) m.null();
            else m.integer(static_cast<uint64_t>(rank - conclusion.primary.begin()) + 1);
            m.real(r.metrics[i]).real(d.value).real(d.low).real(d.high).text(experiment::word_of(d.verdict));
            if (std::isnan(d.value)) m.null();
            else m.text(d.is_ratio ? "ratio" : "difference");
            PB_CHECK(m.real(d.p).real(d.corrected).real(d.detectable).run());
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
                s.integer(v).text(c.by).text(c.name).integer(k).integer(c.requests[v]).integer(i);
                s.text(infos[i].name).text(infos[i].label).text(infos[i].unit).text(word_of(infos[i].better));
                s.real(c.results[v].metrics[i]).real(d.value).real(d.low).real(d.high);
                if (std::isnan(d.value)) s.null();
                else s.text(d.is_ratio ? "ratio" : "difference");
                PB_CHECK(s.run());
            }
    }
    return {};
}

Result<> insert_quality(sqlite3* db, const std::vector<QualityResult>& quality) {
    Statement s(db, insert_into("quality", 10));
    for (size_t v = 0; v < quality.size(); ++v) {
        const QualityResult& q = quality[v];
        s.integer(v).integer(q.predicted).real(q.perplexity).real(q.ratio).real(q.interval.low).real(q.interval.high);
        PB_CHECK(s.real(q.same_choice).integer(q.outputs).real(q.same_outputs).real(q.same_tokens).run());
    }
    return {};
}

}  // namespace

Result<> ResultsStore::finish(const Conclusion& conclusion, const std::string& end) {
    const auto write = [&]() -> Result<> {
        Statement e(db_->handle, "UPDATE experiment SET winner = ?, conclusion = ?, counted = ?, end = ?");
        PB_CHECK(e.text(conclusion.winner).text(conclusion.sentence).text(conclusion.counted).text(end).run());
        Statement n(db_->handle, insert_into("notice", 1)), c(db_->handle, insert_into("comparison", 5));
        for (const std::string& notice : conclusion.notices) PB_CHECK(n.text(notice).run());
        PB_CHECK(insert_metrics(db_->handle, conclusion));
        PB_CHECK(insert_classes(db_->handle, conclusion));
        PB_CHECK(insert_quality(db_->handle, conclusion.quality));
        for (size_t v = 0; v < conclusion.results.size(); ++v) {
            const Comparison& compared = conclusion.results[v].comparison;
            if (compared.metrics.empty()) continue;
            c.integer(v).integer(compared.pairs).integer(compared.repeats);
            PB_CHECK(c.integer(compared.independent).real(compared.same_output).run());
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
