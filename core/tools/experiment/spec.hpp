// What an experiment file says, typed: the question, the variants, the workload, the objective. Filled by
// spec_load.hpp; plain data for everything else in this folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/document.hpp"
#include "engine/request/request.hpp"
#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

// ---- lengths, in tokens ----
struct FixedLength {
    uint32_t tokens = 0;
};
struct UniformLength { // both ends included
    uint32_t min = 1, max = 1;
};
struct LognormalLength { // rounded, then held in [min, max]
    double mean = 1, cv = 1; // of the distribution before that; cv: standard deviation over mean
    uint32_t min = 1, max = 1u << 20;
};
struct ZipfLength { // P(min + k) ∝ (k + 1)^-exponent, up to max
    double exponent = 1;
    uint32_t min = 1, max = 1;
};
struct EmpiricalLength { // each value as likely as its share of the list
    std::vector<uint32_t> values;
};
using Length = std::variant<FixedLength, UniformLength, LognormalLength, ZipfLength, EmpiricalLength>;

// ---- prompts ----
enum class Order { kFile, kShuffled };

struct JsonlPrompts { // a line an object; field: a dotted path in it, numbers index lists ("turns.0")
    std::filesystem::path path;
    std::string field = "prompt";
    Order order = Order::kShuffled; // drawn anew each repeat
};
struct TextPrompts { // cut from a text file at random places
    std::filesystem::path path;
    Length tokens = UniformLength{16, 256};
};
struct SyntheticPrompts { // random token ids
    Length tokens = FixedLength{128};
};
struct TracePrompts { // lengths, times and whatever else the file has
    std::filesystem::path path;
    TraceOptions options;
};
using Prompts = std::variant<JsonlPrompts, TextPrompts, SyntheticPrompts, TracePrompts>;

// ---- times that users wait, in s ----
struct FixedTime {
    double seconds = 0;
};
struct ExponentialTime {
    double mean = 1;
};
struct UniformTime {
    double min = 0, max = 0;
};
struct LognormalTime {
    double mean = 1, cv = 1; // cv: standard deviation over mean
};
using Duration = std::variant<FixedTime, ExponentialTime, UniformTime, LognormalTime>;

// ---- arrivals ----
struct AllAtOnce {};
struct DeterministicArrivals {
    double rate = 1; // requests per second
};
struct PoissonArrivals {
    double rate = 1;
};
struct GammaArrivals { // cv of the gaps: 1 is Poisson, above it bursty
    double rate = 1, cv = 1;
};
struct BurstArrivals { // `size` requests together, every `every_s`
    uint32_t size = 1;
    double every_s = 1;
};
struct TraceArrivals { // the trace's own times, multiplied by time_scale, or so that the mean rate is `rate`
    double time_scale = 1, rate = 0;
};
// Poisson processes whose rate changes with time.
struct RampArrivals { // from one rate to another, evenly; then it stays
    double from = 1, to = 1, over_s = 60;
};
struct OnOffArrivals { // `rate` for on_s, then off_rate for off_s, again and again
    double rate = 1, on_s = 1, off_s = 1, off_rate = 0;
};
struct DiurnalArrivals { // mean_rate (1 + amplitude sin 2π(t / period_s + phase))
    double mean_rate = 1, amplitude = 0.5, period_s = 86400, phase = 0;
};
struct ClosedLoop { // each of the users sends a request, waits for its end, thinks, sends the next one
    uint32_t users = 1;
    Duration think = FixedTime{0};
};
using Arrivals = std::variant<AllAtOnce, DeterministicArrivals, PoissonArrivals, GammaArrivals, BurstArrivals,
                              TraceArrivals, RampArrivals, OnOffArrivals, DiurnalArrivals, ClosedLoop>;

// ---- what requests have in common ----
struct SharedPrefixes { // each session begins with one of them, the k-th with a probability ∝ k^-exponent
    uint32_t number = 0;  // 0: none
    Length tokens = FixedLength{256};
    double exponent = 1;
    double share = 1;     // of the sessions that have one
};

enum class History { kGenerated, kRecorded };
struct Sessions { // of several turns: each is sent after the one before it is done, and has all that was said before it
    std::optional<Length> turns; // none: only as a trace has them
    Duration think = FixedTime{0};
    History history = History::kGenerated; // what the model said, or what the trace has (else random tokens)
};

// ---- which rows of a trace each repeat has ----
struct DisjointWindows {}; // one after another
struct DrawnWindows { // at random places
    double overlap = 0; // share of its rows that a window may have in common with another
};
struct SameWindow {};
using Windows = std::variant<DisjointWindows, DrawnWindows, SameWindow>;

struct TimedSwap { // `at`: when, and what takes which slot
    std::string kind;                // "scheduler", "sampler"
    bool with_previous = false;      // it and the one before it succeed or fail together
    std::optional<uint32_t> request; // once so many have arrived; none: at t_ns
    uint64_t t_ns = 0;               // since the start of the run
    config::Node choice;             // as in `scheduler: …`
    config::Origin origin;
};

struct Deadlines { // drawn evenly, after the arrival
    double min_s = 0, max_s = 0; // 0, 0: none
};

struct WorkloadSpec {
    std::optional<uint32_t> requests; // none: all prompts of the file, each repeat its share of the trace
    Prompts prompts = SyntheticPrompts{};
    std::optional<Length> output_tokens; // none: the trace's; otherwise required
    bool ignore_eos = true;              // output lengths are forced; false: they are the most
    std::optional<Length> max_tokens;    // declared, apart from the length that outputs have; none: that length
    uint32_t max_prompt_tokens = 0;      // longer prompts are cut; 0: only what the model holds
    uint32_t max_output_tokens = 0;
    engine::SamplingParams sampling;     // temperature and the like; lengths and seeds come from the workload
    Arrivals arrivals = AllAtOnce{};
    Windows windows = DisjointWindows{}; // of a trace
    SharedPrefixes shared_prefixes;
    Sessions sessions;
    std::vector<double> tenants;         // shares of the requests, of tenants 1, 2, …; empty: none has one
    std::vector<double> priorities;      // likewise, of the values 0, 1, …
    Deadlines deadline;
    std::vector<TimedSwap> at;           // in every variant
};

struct Slo { // a request meets it if it meets each bound that is given
    std::optional<double> ttft_ms, tpot_ms, e2e_ms;
    bool any() const { return ttft_ms || tpot_ms || e2e_ms; }
};

// ---- what is counted ----
enum class ClassKind { kTenant, kPriority, kPromptLength, kLabel };
struct ByClass { // requests that are looked at apart
    ClassKind kind = ClassKind::kTenant;
    std::vector<uint32_t> bounds{}; // of prompt lengths, ascending: up to and with each, and beyond the last
};

struct Moment { // in the time from the first arrival to the last: a share of it, or seconds after the first
    double value = 0;
    bool is_share = true;
};
struct CountingWindow { // requests that arrive before or after it are served, and not counted
    Moment from{0, true}, until{1, true};
};

struct CapacitySearch { // the highest rate at which enough requests keep an objective
    Slo slo;
    double share = 0.9;                // of the requests that keep it
    double lowest = 1, highest = 64;   // rates of the search, requests per second
    double precision = 0.05;           // relative
};

struct Disturbance { // runs of which others took CPU time
    double limit = 0.05; // share of the machine's CPU time; 1: never too much
    bool repeat = true;  // a run that is beyond it, once
};

struct QualityCheck { // what variants make of a text
    std::filesystem::path text;
    uint32_t tokens = 4096, window = 256;
    uint32_t prompts = 16, output_tokens = 64; // greedy continuations of places in the text
};

struct Warmup { // before each run
    uint32_t requests = 0;
};

struct Jitter { // of simulated steps: they take exp(|x|) times as long, x normal with this deviation
    double step_jitter = 0; // drawn for each step
    double run_jitter = 0;  // drawn for each run, and added
    bool any() const { return step_jitter > 0 || run_jitter > 0; }
};

struct Watchdog {
    double call_s = 300; // that a plugin's call may take; 0: any time
};

struct VariantSpec {
    std::string name;
    config::Node patch{}; // laid over the file's keys; its leaves are the declared differences
    std::vector<TimedSwap> at{};
    config::Node at_given{}; // as the file has it
    // With the patch:
    WorkloadSpec workload{};
    Warmup warmup{};
    Jitter jitter{};
    config::Node workload_given{}; // what `workload` was read from
    size_t workload_of = 0;        // the first variant that has the same workload
    bool same_requests = true;     // as the baseline's, apart from when they arrive: their outputs can be compared
};

struct AdaptiveRepeats { // as many as it takes to see a difference, by the spread of the first
    double effect = 0.05;    // relative; of shares in %, that many hundred points
    uint32_t first = 10;
};

struct ExperimentSpec {
    std::string name;      // of the file, or of its folder where that says more
    std::string question;
    std::vector<VariantSpec> variants; // at least one
    std::string baseline_name;         // as the file has it; empty: the first
    size_t baseline = 0;               // index into variants
    uint32_t repeats = 10;             // at most, where they are adaptive
    std::optional<AdaptiveRepeats> adaptive;
    std::vector<std::string> primary;  // names of metrics, at least one; the first heads the conclusion
    uint64_t seed = 0;
    Warmup warmup; // these three: where a variant has none of its own
    Jitter jitter;
    WorkloadSpec workload;
    Watchdog watchdog;
    Slo slo;
    std::vector<ByClass> by;
    std::optional<CountingWindow> window; // none: every request counts
    bool window_by_rule = true;        // the rule of counted.hpp decides once the workload is known
    std::optional<CapacitySearch> capacity;
    Disturbance disturbance;
    std::optional<QualityCheck> quality;
    std::string results;               // folder; empty: results/<name>-<time>
    config::Node document;             // the file with its includes; the engine's keys are read from it
};

}  // namespace patchbay::experiment
