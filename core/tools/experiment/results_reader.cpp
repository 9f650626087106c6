#include "experiment/results_reader.hpp"

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "experiment/results_store.hpp"

namespace patchbay::experiment {
namespace {

struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Database = std::unique_ptr<sqlite3, Close>;

// Query of a query, column by column.
class Query {
  public:
    Query(const Database& db, const std::string& sql) : db_(db.get()) {
        sqlite3_stmt* s = nullptr;
        if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr) == SQLITE_OK) statement_.reset(s);
    }
    bool next() {
        code_ = statement_ ? sqlite3_step(statement_.get()) : SQLITE_ERROR;
        return code_ == SQLITE_ROW;
    }
    bool failed() const { return code_ != SQLITE_DONE && code_ != SQLITE_ROW; }
    std::string text(int column) const {
        const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
        return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))) : "";
    }
    double real(int column) const {
        return is_null(column) ? kNoValue : sqlite3_column_double(statement_.get(), column);
    }
    uint64_t integer(int column) const {
        return static_cast<uint64_t>(std::max<sqlite3_int64>(0, sqlite3_column_int64(statement_.get(), column)));
    }
    bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
    sqlite3_stmt* statement() const { return statement_.get(); }

  private:
    sqlite3* db_;
    std::unique_ptr<sqlite3_stmt, Close> statement_;
    int code_ = SQLITE_OK;
};

Result<Database> open(const std::filesystem::path& file) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return not_found(file.string() + " is not there");
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    Database db(raw);
    Query version(db, "PRAGMA user_version");
    if (opened != SQLITE_OK || !version.next()) return invalid(file.string() + " is no results database");
    if (version.integer(0) < kReadableResults || version.integer(0) > kResultsVersion)
        return unsupported(file.string() + " has tables of version " + version.text(0) + ", expected " +
                           std::to_string(kReadableResults) + " to " + std::to_string(kResultsVersion) +
                           ": another version of patchbay made it");
    return db;
}

Verdict verdict_of(const std::string& word) {
    for (const Verdict v : {Verdict::kBaseline, Verdict::kBetter, Verdict::kWorse, Verdict::kNoDifference,
                            Verdict::kDifferent, Verdict::kTooFewRepeats, Verdict::kExploratory})
        if (word == word_of(v)) return v;
    return Verdict::kNone;
}

void read_metrics(const Database& db, StoredExperiment& e) {
    MetricList& list = e.conclusion.list;
    Query named(db, "SELECT DISTINCT name FROM metric ORDER BY position"); // plugins' metrics are those of this one
    while (named.next())
        if (!metric_named(named.text(0), list)) list.push_back(plugin_metric(named.text(0)));
    const size_t metrics = list.size();
    std::vector<std::pair<uint64_t, size_t>> ranked;
    std::vector<VariantResult> results(e.variants.size());
    bool any = false;
    for (size_t v = 0; v < results.size(); ++v) {
        results[v].metrics.assign(metrics, kNoValue);
        if (v != e.baseline) results[v].comparison.metrics.resize(metrics);
    }
    Query rows(db, "SELECT variant_id, name, primary_rank, value, difference, low, high, verdict, scale, p, "
                  "p_corrected, detectable FROM metric");
    while (rows.next()) {
        const size_t v = rows.integer(0);
        const auto m = metric_named(rows.text(1), list);
        if (v >= results.size() || !m) continue;
        any = true;
        results[v].metrics[*m] = rows.real(3);
        if (v == e.baseline && !rows.is_null(2)) ranked.emplace_back(rows.integer(2), *m);
        if (v == e.baseline) continue;
        results[v].comparison.metrics[*m] = {rows.real(4), rows.real(5),  rows.real(6),  verdict_of(rows.text(7)),
                                             rows.real(9), rows.real(10), rows.real(11), rows.text(8) == "ratio"};
    }
    if (!any) return;
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [rank, m] : ranked) e.conclusion.primary.push_back(m);
    Query compared(db, "SELECT variant_id, pairs, repeats, independent, same_output FROM comparison");
    while (compared.next()) {
        const size_t v = compared.integer(0);
        if (v >= results.size()) continue;
        Comparison& c = results[v].comparison;
        c.pairs = static_cast<uint32_t>(compared.integer(1));
        c.repeats = static_cast<uint32_t>(compared.integer(2));
        c.independent = static_cast<uint32_t>(compared.integer(3));
        c.same_output = compared.real(4);
    }
    e.conclusion.results = std::move(results);
}

void read_classes(const Database& db, StoredExperiment& e) {
    const size_t metrics = e.conclusion.list.size();
    Query rows(db, "SELECT variant_id, kind, class, class_position, requests, name, value, difference, low, high, "
                   "scale FROM by_class ORDER BY class_position");
    auto& classes = e.conclusion.classes;
    for (uint64_t last = 0; rows.next();) {
        const size_t v = rows.integer(0);
        const auto m = metric_named(rows.text(5));
        if (v >= e.variants.size() || !m) continue;
        if (classes.empty() || std::exchange(last, rows.integer(3)) != rows.integer(3)) {
            ClassResults& c = classes.emplace_back(ClassResults{rows.text(1), rows.text(2), {}, {}});
            c.requests.assign(e.variants.size(), 0);
            c.results.resize(e.variants.size());
            for (size_t i = 0; i < c.results.size(); ++i) {
                c.results[i].metrics.assign(metrics, kNoValue);
                if (i != e.baseline) c.results[i].comparison.metrics.resize(metrics);
            }
        }
        ClassResults& c = classes.back();
        c.requests[v] = rows.integer(4);
        c.results[v].metrics[*m] = rows.real(6);
        if (v == e.baseline) continue;
        Difference& d = c.results[v].comparison.metrics[*m];
        d.value = rows.real(7);
        d.low = rows.real(8);
        d.high = rows.real(9);
        d.is_ratio = rows.text(10) == "ratio";
        d.verdict = std::isnan(d.value) ? Verdict::kNone : Verdict::kExploratory;
    }
}

void read_quality(const Database& db, StoredExperiment& e) {
    Query rows(db, "SELECT predicted_tokens, perplexity, ratio, low, high, same_choice, outputs, same_outputs, "
                   "same_tokens FROM quality ORDER BY variant_id");
    while (rows.next())
        e.conclusion.quality.push_back({rows.integer(0), rows.real(1), rows.real(2), {rows.real(3), rows.real(4)},
                                        rows.real(5), rows.integer(6), rows.real(7), rows.real(8)});
}

void write_cell(std::ostream& out, sqlite3_stmt* row, int column) {
    static constexpr char kHex[] = "0123456789abcdef";
    switch (sqlite3_column_type(row, column)) {
        case SQLITE_NULL: return;
        case SQLITE_BLOB: {
            const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(row, column));
            const int size = sqlite3_column_bytes(row, column);
            for (int i = 0; i < size; ++i) out << kHex[bytes[i] >> 4] << kHex[bytes[i] & 15];
            return;
        }
        case SQLITE_TEXT: {
            const std::string text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
            if (text.find_first_of(",\"\r\n") == text.npos) {
                out << text;
                return;
            }
            out << '"';
            for (const char c : text) out << (c == '"' ? "\"\"" : std::string(1, c));
            out << '"';
            return;
        }
        default: out << reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    }
}

// "max_num_seqs: 8  # a.yaml:3:4" → "max_num_seqs: 8": where a value was written does not matter.
std::string without_origin(std::string line) {
    line.resize(std::min(line.rfind(" # "), line.size()));
    line.resize(line.find_last_not_of(' ') + 1);
    return line;
}

std::string without_origins(const std::string& yaml) {
    std::string out;
    std::istringstream lines(yaml);
    for (std::string line; std::getline(lines, line);) out += without_origin(line) + "\n";
    return out;
}

// "engine:", "  max_num_seqs: 8  # a.yaml:3:4" → engine.max_num_seqs: 8. Deeper lines belong to the key above them.
void read_settings(const std::string& yaml, std::map<std::string, std::string>& out) {
    std::string section, path;
    std::istringstream lines(yaml);
    for (std::string line; std::getline(lines, line);) {
        line = without_origin(line);
        const size_t indent = line.find_first_not_of(' '), colon = line.find(':');
        if (indent == std::string::npos) continue;
        if (indent > 2 || colon == std::string::npos) {
            out[path] += line.substr(indent);
            continue;
        }
        const std::string key = line.substr(indent, colon - indent);
        if (indent == 0) section = key;
        path = indent == 0 ? key : section + "." + key;
        const size_t value = line.find_first_not_of(' ', colon + 1);
        if (value != std::string::npos) out[path] = line.substr(value);
    }
}

std::map<std::string, std::string> settings_of(const std::string& yaml, const std::string& facts,
                                               const std::string& plugins) {
    using nlohmann::json;
    std::map<std::string, std::string> out;
    read_settings(yaml, out);
    const json automatic = json::parse(facts, nullptr, false), used = json::parse(plugins, nullptr, false);
    if (automatic.is_object())
        for (const auto& [name, value] : automatic.items()) out.emplace(name, value.dump());
    if (!used.is_array()) return out;
    for (const json& p : used) {
        const auto text = [&](const char* key) {
            const auto at = p.find(key);
            return at != p.end() && at->is_string() ? at->get<std::string>() : std::string();
        };
        std::string& all = out["plugin of " + text("kind")]; // swaps may have brought several
        all += (all.empty() ? "" : ", ") + text("name") + " " + text("version") + " " + text("sha256").substr(0, 12);
    }
    return out;
}

}  // namespace

Result<StoredExperiment> read_experiment(const std::filesystem::path& file) {
    PB_TRY(const Database db, open(file));
    StoredExperiment e;
    Query info(db, "SELECT name, question, started, end, seed, version, cpu, workload_yaml, repeats, winner, "
                   "conclusion, counted FROM experiment");
    if (!info.next()) return invalid(file.string() + " holds no experiment: it ended before the first run");
    std::string* const texts[] = {&e.name, &e.question, &e.started, &e.end,
                                  &e.seed, &e.version,  &e.cpu,     &e.workload_yaml};
    for (int i = 0; i < 8; ++i) *texts[i] = info.text(i);
    e.workload_yaml = without_origins(e.workload_yaml);
    e.repeats = info.integer(8);
    e.conclusion.winner = info.text(9);
    e.conclusion.sentence = info.text(10);
    e.conclusion.counted = info.text(11);
    Query variants(db, "SELECT name, is_baseline, effective_yaml, facts_json, plugins_json FROM variant ORDER BY id");
    while (variants.next()) {
        if (variants.integer(1)) e.baseline = e.variants.size();
        e.variants.push_back(variants.text(0));
        e.settings.push_back(settings_of(variants.text(2), variants.text(3), variants.text(4)));
    }
    Query runs(db, "SELECT coalesce(sum(NOT superseded), 0), coalesce(sum(valid), 0), coalesce(sum(superseded), 0) "
                   "FROM run");
    if (runs.next()) {
        e.runs = runs.integer(0);
        e.valid_runs = runs.integer(1);
        e.superseded_runs = runs.integer(2);
    }
    Query program(db, "SELECT substr(git_commit, 1, 12) || ' ' || substr(program_sha256, 1, 12) FROM experiment");
    if (program.next()) e.program = program.text(0); // version 5 of the tables does not have it
    Query inputs(db, "SELECT DISTINCT sha256 FROM input ORDER BY sha256");
    while (inputs.next()) e.inputs += inputs.text(0) + "\n";
    Query notices(db, "SELECT text FROM notice");
    while (notices.next()) e.conclusion.notices.push_back(notices.text(0));
    if (e.variants.empty() || variants.failed() || notices.failed()) return invalid(file.string() + " is damaged");
    read_metrics(db, e);
    read_classes(db, e);
    read_quality(db, e);
    return e;
}

Result<> export_csv(const std::filesystem::path& file, const std::string& table, std::ostream& out) {
    PB_TRY(const Database db, open(file));
    std::vector<std::string> tables;
    Query names(db, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (names.next()) tables.push_back(names.text(0));
    if (std::find(tables.begin(), tables.end(), table) == tables.end())
        return not_found("no table '" + table + "'" + did_you_mean(table, tables) + ", there are " + joined(tables));
    Query rows(db, "SELECT * FROM \"" + table + "\""); // one of the names above
    const int columns = rows.statement() ? sqlite3_column_count(rows.statement()) : 0;
    for (int c = 0; c < columns; ++c) out << (c ? "," : "") << sqlite3_column_name(rows.statement(), c);
    out << '\n';
    while (rows.next()) {
        for (int c = 0; c < columns; ++c) {
            if (c) out << ',';
            write_cell(out, rows.statement(), c);
        }
        out << '\n';
    }
    if (rows.failed()) return fail("cannot read '" + table + "' of " + file.string());
    return {};
}

}  // namespace patchbay::experiment
