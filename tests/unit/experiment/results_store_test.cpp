#include "experiment/results_store.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

namespace patchbay::experiment::results_store_test {
namespace {

using ::testing::HasSubstr;

class ResultsStoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "patchbay-results-XXXXXX").string();
        folder_ = mkdtemp(name.data());
        file_ = folder_ / "results.sqlite";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string query(const std::string& sql) const { // the first column of the first row
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open_v2(file_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
        sqlite3_stmt* s = nullptr;
        EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &s, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
        std::string out = "(nothing)";
        if (sqlite3_step(s) == SQLITE_ROW) {
            const auto* text = static_cast<const char*>(sqlite3_column_blob(s, 0));
            out = text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(s, 0)))
                  : sqlite3_column_type(s, 0) == SQLITE_NULL ? "NULL"
                                                             : "";
        }
        sqlite3_finalize(s);
        sqlite3_close(db);
        return out;
    }

    static ExperimentRow experiment() {
        ExperimentRow row;
        row.name = "e";
        row.question = "it's a \"question\"";
        row.baseline = "a";
        row.seed = ~0ull;
        row.slo.ttft_ms = 200;
        row.built_from = {"0123abcd", true};
        row.machine.program_sha256 = "5ea1";
        row.inputs = {{"/a/prompts.jsonl", "77"}};
        row.capacity_share = 0.95;
        return row;
    }
    static std::vector<VariantRow> variants() {
        return {{"a", "", "scheduler: fcfs\n", "{}", "[]", {}},
                {"b", "scheduler: sjf\n", "scheduler: sjf\n", "{}", "[]", {{"scheduler.plugin", "fcfs", "sjf", true}}}};
    }
    static RunRecord run(uint32_t position, size_t steps = 2) {
        RunRecord r;
        r.variant = position % 2;
        r.position = position;
        r.duration_ns = 5;
        RequestRecord q;
        q.arrival_ns = 1;
        q.first_scheduled_ns = 2;
        q.finish_ns = 4;
        q.tenant = 5;
        q.priority = 6;
        q.deadline_ns = 8;
        q.token_ns = {3, 4};
        q.output = {70, 71};
        q.finish = engine::FinishReason::kLength;
        r.requests = {q, {}};
        r.steps.resize(steps);
        for (size_t i = 0; i < steps; ++i) r.steps[i].step = i + 1;
        r.steps[0].queues.waiting_requests = 9;
        r.steps[0].calls.forward = {
            .model_forward = 70, .attention_plan = 1, .attention_append = 2, .attention_run = 4};
        r.steps[0].calls.forward.device_launch = 30;
        r.steps[0].calls.kv_choose_ns = 60;
        r.steps[0].kv.empty_slots = 5;
        r.steps[0].calls.kv_policy_faults = 12;
        r.steps[0].calls.plan_faults = 11;
        r.steps[0].calls.proposer_faults = 13;
        return r;
    }

    Result<ResultsStore> created(uint64_t max_bytes = 0) const {
        PB_TRY(auto lock, ResultsLock::take(folder_));
        return ResultsStore::create(std::move(lock), max_bytes);
    }

    static Result<> add_run(ResultsStore& store, const RunRecord& r) {
        PB_TRY(const uint64_t id, store.begin_run(r, 7));
        Rows rows{r.steps, {}};
        for (uint32_t i = 0; i < r.requests.size(); ++i) rows.requests.push_back({i, r.requests[i]});
        PB_CHECK(store.add_rows(id, rows));
        RunSummary summary;
        summary.metrics.assign(metric_infos().size(), kNoValue);
        summary.metrics[1] = 2.5;
        summary.of_plugins = {{"plugin.scheduler.depth", 4.5}};
        return store.end_run(id, r, summary, {});
    }

    std::filesystem::path folder_, file_;
};

TEST_F(ResultsStoreTest, KeepsWhatItIsGiven) {
    auto store = created();
    ASSERT_TRUE(store) << store.error();
    ASSERT_TRUE(store->add_experiment(experiment(), variants()));
    for (uint32_t i = 0; i < 2; ++i) {
        const auto added = add_run(*store, run(i));
        ASSERT_TRUE(added) << added.error();
    }
    Conclusion c;
    c.winner = "b";
    c.sentence = "b it is";
    c.notices = {"look out"};
    c.results.resize(2);
    for (VariantResult& r : c.results) r.metrics.assign(metric_infos().size(), 1.5);
    c.primary = {*metric_named("ttft_p50")};
    c.results[1].comparison.metrics.assign(metric_infos().size(),
                                           {0.5, 0.25, 0.75, Verdict::kBetter, 0.125, 0.25, 2, true});
    c.results[1].comparison.independent = 6;
    c.results[0].metrics[0] = kNoValue;
    c.results[1].bounds = {*metric_named("capacity")};
    const auto finished = store->finish(c, "complete");
    ASSERT_TRUE(finished) << finished.error();

    EXPECT_EQ(query("SELECT question FROM experiment"), "it's a \"question\"");
    EXPECT_EQ(query("SELECT seed FROM experiment"), "18446744073709551615");
    EXPECT_EQ(query("SELECT end || winner || conclusion FROM experiment"), "completebb it is");
    EXPECT_EQ(query("SELECT CAST(slo_ttft_ms AS TEXT) FROM experiment"), "200.0");
    EXPECT_EQ(query("SELECT git_commit || git_changes || program_sha256 || capacity_share FROM experiment"),
              "0123abcd15ea10.95");
    EXPECT_EQ(query("SELECT path || sha256 FROM input"), "/a/prompts.jsonl77");
    EXPECT_EQ(query("SELECT name FROM variant WHERE is_baseline"), "a");
    EXPECT_EQ(query("SELECT path || '=' || value || declared FROM difference WHERE variant_id = 1"),
              "scheduler.plugin=sjf1");
    EXPECT_EQ(query("SELECT count(*) || '' FROM run"), "2");
    EXPECT_EQ(query("SELECT valid || reason FROM run WHERE id = 0"), "1");
    EXPECT_EQ(query("SELECT group_concat(name || '=' || value) FROM run_metric WHERE run_id = 1"),
              "plugin.scheduler.depth=4.5,total_throughput=2.5");
    EXPECT_EQ(query("SELECT token_ns FROM request WHERE run_id = 0 AND number = 0"),
              std::string("\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 16));
    EXPECT_EQ(query("SELECT first_token_ns || ' ' || output_tokens || finish_reason FROM request WHERE run_id = 0 AND "
                    "number = 0"),
              "3 2length");
    EXPECT_EQ(query("SELECT tenant || priority || deadline_ns FROM request WHERE run_id = 0 AND number = 0"), "568");
    EXPECT_EQ(query("SELECT deadline_ns FROM request WHERE run_id = 0 AND number = 1"), "NULL");
    EXPECT_EQ(query("SELECT first_token_ns FROM request WHERE run_id = 0 AND number = 1"), "NULL");
    EXPECT_EQ(query("SELECT waiting_requests || '' FROM step WHERE run_id = 1 AND step = 1"), "9");
    EXPECT_EQ(
        query("SELECT forward_ns || ' ' || attention_ns || ' ' || plan_faults || ' ' || proposer_faults || ' ' || "
              "graph_miss FROM step WHERE run_id = 1 AND step = 1"),
        "70 7 11 13 device");
    EXPECT_EQ(query("SELECT device_ns || ' ' || kv_policy_ns || ' ' || empty_slots || ' ' || kv_policy_faults FROM "
                    "step WHERE run_id = 1 AND step = 1"),
              "30 60 5 12");
    EXPECT_EQ(query("SELECT verdict || difference || unit FROM metric WHERE variant_id = 1 AND name = 'ttft_p50'"),
              "better0.5ms");
    EXPECT_EQ(query("SELECT primary_rank || scale || p || p_corrected || detectable FROM metric"
                    " WHERE variant_id = 1 AND name = 'ttft_p50'"),
              "1ratio0.1250.252.0");
    EXPECT_EQ(query("SELECT primary_rank FROM metric WHERE variant_id = 1 AND name = 'ttft_p90'"), "NULL");
    EXPECT_EQ(query("SELECT group_concat(name || ' ' || bound) FROM metric WHERE bound IS NOT NULL"),
              "capacity at least");
    EXPECT_EQ(query("SELECT independent || '' FROM comparison WHERE variant_id = 1"), "6");
    EXPECT_EQ(query("SELECT value FROM metric WHERE variant_id = 0 AND position = 0"), "NULL");
    EXPECT_EQ(query("SELECT text FROM notice"), "look out");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "results.sqlite-wal"));
}

TEST_F(ResultsStoreTest, SaysWhatIsWrongWhenTheDiskIsFullAndKeepsEarlierRunsWhole) {
    constexpr uint64_t kMaxBytes = 256 << 10;
    auto store = created(kMaxBytes);
    ASSERT_TRUE(store) << store.error();
    ASSERT_TRUE(store->add_experiment(experiment(), variants()));
    uint32_t stored = 0;
    Result<> added;
    while ((added = add_run(*store, run(stored, 200))) && stored < 100) stored += 1;
    ASSERT_FALSE(added);
    EXPECT_THAT(added.error(),
                ::testing::AllOf(HasSubstr("cannot write"), HasSubstr("results.sqlite"), HasSubstr("full")));
    EXPECT_GT(stored, 0u);
    EXPECT_EQ(query("SELECT count(*) || '' FROM run WHERE end <> 'running'"), std::to_string(stored));
    EXPECT_EQ(query("SELECT count(*) || '' FROM step"), std::to_string(stored * 200));
}

TEST_F(ResultsStoreTest, IsFinishedThoughAnotherProgramReadsIt) {
    auto store = created();
    ASSERT_TRUE(store) << store.error();
    ASSERT_TRUE(store->add_experiment(experiment(), variants()));
    ASSERT_TRUE(add_run(*store, run(0)));
    sqlite3* reader = nullptr;
    ASSERT_EQ(sqlite3_open_v2(file_.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM step", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto finished = store->finish({}, "complete");
    EXPECT_TRUE(finished) << finished.error();
    EXPECT_EQ(query("SELECT end FROM experiment"), "complete");
    sqlite3_close(reader);
}

TEST_F(ResultsStoreTest, IsWrittenByOneAtATime) {
    EXPECT_EQ(writer_of(folder_), ResultsWriter::kNone);
    {
        auto store = created();
        ASSERT_TRUE(store) << store.error();
        ASSERT_TRUE(store->add_experiment(experiment(), variants()));
        ASSERT_TRUE(store->begin_run(run(0), 7));
        EXPECT_EQ(writer_of(folder_), ResultsWriter::kThere);
        const auto second = ResultsLock::take(folder_);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.failure().code, StatusCode::kUnavailable);
        EXPECT_THAT(second.error(), HasSubstr(folder_.string() + " is being written by another patchbay"));
        EXPECT_EQ(query("SELECT end FROM run"), "running");
    }
    EXPECT_EQ(writer_of(folder_), ResultsWriter::kNone);
    auto lock = ResultsLock::take(folder_);
    ASSERT_TRUE(lock) << lock.error();
    const auto resumed = ResultsStore::resume(*std::move(lock));
    ASSERT_TRUE(resumed) << resumed.error();
    EXPECT_EQ(query("SELECT end FROM run"), "(nothing)");
    EXPECT_EQ(writer_of(folder_), ResultsWriter::kThere);
}

TEST_F(ResultsStoreTest, CannotBeMadeWhereThereIsNoFolder) {
    const auto lock = ResultsLock::take(folder_ / "none");
    ASSERT_FALSE(lock);
    EXPECT_THAT(lock.error(), HasSubstr("none"));
    EXPECT_EQ(writer_of(folder_ / "none"), ResultsWriter::kUnknown);
}

}  // namespace
}  // namespace patchbay::experiment::results_store_test
