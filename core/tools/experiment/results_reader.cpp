#include "experiment/results_reader.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "config/table.hpp"
#include "experiment/results_store.hpp"
#include "experiment/sqlite.hpp"

namespace patchbay::experiment {
namespace {

Result<SqliteFile> open(const std::filesystem::path& file) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) return not_found(file.string() + " is not there");
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    SqliteFile db(raw);
    Query version(db.get(), "PRAGMA user_version");
    if (opened != SQLITE_OK || !version.next()) return invalid(file.string() + " is not a results database");
    const auto number = version.read<int64_t>();
    if (number < kReadableResults || number > kResultsVersion)
        return unsupported(file.string() + " has tables of version " + std::to_string(number) + ", expected " +
                           std::to_string(kReadableResults) + " to " + std::to_string(kResultsVersion) +
                           ": another version of patchbay made it");
    return db;
}

Verdict verdict_of(const std::string& word) {
    for (const Verdict v : {Verdict::kBaseline, Verdict::kBetter, Verdict::kWorse, Verdict::kNoDifference,
                            Verdict::kDifferent, Verdict::kTooFewRepeats, Verdict::kExploratory, Verdict::kAtLeast,
                            Verdict::kAtMost})
        if (word == word_of(v)) return v;
    return Verdict::kNone;
}

// Of each variant.
std::vector<VariantResult> without_values(const StoredExperiment& e, size_t metrics) {
    std::vector<VariantResult> out(e.variants.size());
    for (size_t v = 0; v < out.size(); ++v) {
        out[v].metrics.assign(metrics, kNoValue);
        if (v != e.baseline) out[v].comparison.metrics.resize(metrics);
    }
    return out;
}

void read_metrics(const SqliteFile& db, StoredExperiment& e) {
    MetricList& list = e.conclusion.list;
    // Plugins' metrics are those of this one.
    Query named(db.get(), "SELECT DISTINCT name FROM metric ORDER BY position");
    while (named.next())
        if (const auto name = named.read<std::string>(); !metric_named(name, list)) list.push_back(plugin_metric(name));
    std::vector<std::pair<uint64_t, size_t>> ranked;
    std::vector<VariantResult> results = without_values(e, list.size());
    bool any = false;
    Query rows(db.get(), "SELECT variant_id, name, primary_rank, value, difference, low, high, verdict, scale, p, "
                         "p_corrected, detectable FROM metric");
    while (rows.next()) {
        size_t v = 0;
        std::string name, verdict, scale;
        std::optional<uint64_t> rank;
        double value = 0;
        Difference d;
        rows.read(v, name, rank, value, d.value, d.low, d.high, verdict, scale, d.p, d.corrected, d.detectable);
        const auto m = metric_named(name, list);
        if (v >= results.size() || !m) continue;
        any = true;
        results[v].metrics[*m] = value;
        if (v == e.baseline && rank) ranked.emplace_back(*rank, *m);
        if (v == e.baseline) continue;
        d.verdict = verdict_of(verdict);
        d.is_ratio = scale == "ratio";
        results[v].comparison.metrics[*m] = d;
    }
    if (!any) return;
    Query bounds(db.get(), "SELECT variant_id, name FROM metric WHERE bound IS NOT NULL"); // older ones have none
    while (bounds.next()) {
        const auto v = bounds.read<size_t>();
        const auto m = metric_named(bounds.read<std::string>(), list);
        if (v < results.size() && m) results[v].bounds.insert(*m);
    }
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [rank, m] : ranked) e.conclusion.primary.push_back(m);
    Query compared(db.get(), "SELECT variant_id, pairs, repeats, independent, same_output FROM comparison");
    while (compared.next()) {
        const auto v = compared.read<size_t>();
        if (v >= results.size()) continue;
        Comparison& c = results[v].comparison;
        compared.read(c.pairs, c.repeats, c.independent, c.same_output);
    }
    e.conclusion.results = std::move(results);
}

void read_classes(const SqliteFile& db, StoredExperiment& e) {
    const size_t metrics = e.conclusion.list.size();
    Query rows(db.get(), "SELECT variant_id, kind, class, class_position, requests, name, value, difference, low, "
                         "high, scale FROM by_class ORDER BY class_position");
    auto& classes = e.conclusion.classes;
    for (uint64_t last = 0; rows.next();) {
        size_t v = 0;
        std::string kind, of, name, scale;
        uint64_t position = 0, requests = 0;
        double value = 0;
        Difference d;
        rows.read(v, kind, of, position, requests, name, value, d.value, d.low, d.high, scale);
        const auto m = metric_named(name);
        if (v >= e.variants.size() || !m) continue;
        if (classes.empty() || std::exchange(last, position) != position)
            classes.push_back({kind, of, std::vector<uint64_t>(e.variants.size()), without_values(e, metrics)});
        ClassResults& c = classes.back();
        c.requests[v] = requests;
        c.results[v].metrics[*m] = value;
        if (v == e.baseline) continue;
        d.is_ratio = scale == "ratio";
        d.verdict = std::isnan(d.value) ? Verdict::kNone : Verdict::kExploratory;
        c.results[v].comparison.metrics[*m] = d;
    }
}

void read_quality(const SqliteFile& db, StoredExperiment& e) {
    Query rows(db.get(), "SELECT predicted_tokens, perplexity, ratio, low, high, same_choice, outputs, same_outputs, "
                         "same_tokens FROM quality ORDER BY variant_id");
    while (rows.next()) {
        QualityResult& q = e.conclusion.quality.emplace_back();
        rows.read(q.predicted, q.perplexity, q.ratio, q.interval.low, q.interval.high, q.same_choice, q.outputs,
                  q.same_outputs, q.same_tokens);
    }
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
        if (indent > 2 || colon == std::string::npos || line[indent] == '-') {
            std::string& all = out[path];
            all += (all.empty() ? "" : all.ends_with(':') ? " " : "; ") + line.substr(indent);
            continue;
        }
        const std::string key = line.substr(indent, colon - indent);
        if (indent == 0) section = key;
        path = indent == 0 ? key : section + "." + key;
        const size_t value = line.find_first_not_of(' ', colon + 1);
        if (value != std::string::npos) out[path] = line.substr(value);
    }
}

// Of the sections that are named, nothing of the others.
void read_sections(const std::string& yaml, std::initializer_list<std::string_view> sections,
                   std::map<std::string, std::string>& out) {
    std::map<std::string, std::string> all;
    read_settings(yaml, all);
    for (const auto& [key, value] : all)
        if (std::ranges::find(sections, std::string_view(key).substr(0, key.find('.'))) != sections.end())
            out[key] = value;
}

// patch: of which what is no key of the engine is not in the yaml.
std::map<std::string, std::string> settings_of(const std::string& yaml, const std::string& patch,
                                               const std::string& facts, const std::string& plugins) {
    using nlohmann::json;
    std::map<std::string, std::string> out;
    read_settings(yaml, out);
    read_sections(patch, {"workload", "warmup", "simulation", "at"}, out);
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

std::map<std::string, std::string> common_settings(const SqliteFile& db) {
    std::map<std::string, std::string> out;
    Query row(db.get(), "SELECT spec_yaml, repeats, warmup_requests, counted, slo_ttft_ms, slo_tpot_ms, slo_e2e_ms "
                        "FROM experiment");
    if (!row.next()) return out;
    std::string spec, counted;
    std::optional<double> ttft, tpot, e2e;
    row.read(spec, out["repeats"], out["warmup.requests"], counted, ttft, tpot, e2e);
    read_sections(spec, {"simulation", "capacity", "disturbance"}, out);
    constexpr std::string_view kCounted = "counted: ";
    out["counted"] = counted.starts_with(kCounted) ? counted.substr(kCounted.size()) : counted;
    if (ttft) out["slo.ttft_ms"] = config::print_float(*ttft);
    if (tpot) out["slo.tpot_ms"] = config::print_float(*tpot);
    if (e2e) out["slo.e2e_ms"] = config::print_float(*e2e);
    return out;
}

}  // namespace

Result<StoredExperiment> read_experiment(const std::filesystem::path& file) {
    PB_TRY(const SqliteFile db, open(file));
    StoredExperiment e;
    Query info(db.get(), "SELECT name, question, started, end, seed, version, cpu, workload_yaml, repeats, winner, "
                         "conclusion, counted FROM experiment");
    if (!info.next()) return invalid(file.string() + " holds no experiment: it ended before the first run");
    info.read(e.name, e.question, e.started, e.end, e.seed, e.version, e.cpu, e.workload_yaml, e.repeats,
              e.conclusion.winner, e.conclusion.sentence, e.conclusion.counted);
    e.workload_yaml = without_origins(e.workload_yaml);
    e.common = common_settings(db);
    Query variants(db.get(), "SELECT name, is_baseline, patch_yaml, effective_yaml, facts_json, plugins_json "
                             "FROM variant ORDER BY id");
    while (variants.next()) {
        std::string name, patch, yaml, facts, plugins;
        bool is_baseline = false;
        variants.read(name, is_baseline, patch, yaml, facts, plugins);
        if (is_baseline) e.baseline = e.variants.size();
        e.variants.push_back(name);
        e.settings.push_back(settings_of(yaml, patch, facts, plugins));
    }
    Query runs(db.get(), "SELECT coalesce(sum(NOT superseded), 0), coalesce(sum(valid), 0), "
                         "coalesce(sum(superseded), 0) FROM run");
    if (runs.next()) runs.read(e.runs, e.valid_runs, e.superseded_runs);
    Query program(db.get(), "SELECT substr(git_commit, 1, 12) || ' ' || substr(program_sha256, 1, 12) FROM experiment");
    if (program.next()) program.read(e.program); // version 5 of the tables does not have it
    Query inputs(db.get(), "SELECT DISTINCT sha256 FROM input ORDER BY sha256");
    while (inputs.next()) e.inputs += inputs.read<std::string>() + "\n";
    Query notices(db.get(), "SELECT text FROM notice");
    while (notices.next()) e.conclusion.notices.push_back(notices.read<std::string>());
    if (e.variants.empty() || variants.failed() || notices.failed()) return invalid(file.string() + " is damaged");
    read_metrics(db, e);
    read_classes(db, e);
    read_quality(db, e);
    return e;
}

Result<> export_csv(const std::filesystem::path& file, const std::string& table, std::ostream& out) {
    PB_TRY(const SqliteFile db, open(file));
    std::vector<std::string> tables;
    Query names(db.get(), "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (names.next()) tables.push_back(names.read<std::string>());
    if (std::find(tables.begin(), tables.end(), table) == tables.end())
        return not_found("no table '" + table + "'" + did_you_mean(table, tables) + ", there are " + joined(tables));
    Query rows(db.get(), "SELECT * FROM \"" + table + "\""); // one of the names above
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
