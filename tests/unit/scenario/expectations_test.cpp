// What a scenario expects: each kind of expectation can fail, and is refused where it means nothing.
#include <gmock/gmock.h>

#include <set>

#include "played.hpp"

namespace patchbay::scenario::expectations_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Two requests run, one waits, one has ended; a has a token and a draft, b came half from the cache.
const std::string kBusy =
    "engine: {block_size: 4, num_blocks: 100, max_num_seqs: 3, num_speculative_tokens: 2}\n"
    "model: {vocabulary: {9: nine}}\n"
    "steps:\n"
    "  - add: [{id: a, prompt: {repeat: [7, 8]}}, {id: e, prompt: 4, max_tokens: 1}]\n"
    "  - run: 1\n"
    "  - add: [{id: b, prompt: {repeat: [7, 8], then: [1, 2]}}, {id: c, prompt: 4}, {id: d, prompt: 4}]\n"
    "  - expect: {scheduled: {a: 1, b: 2, c: 4}}\n"
    "  - output: {a: [9]}\n"
    "  - draft: {a: [3]}\n";

TEST(ScenarioDifference, IsFoundInEachKindOfExpectation) {
    const struct {
        const char *right, *wrong, *expected, *got;
    } each[] = {
        {"scheduled: {a: 2, b: 1, c: 1}", "scheduled: {a: 1, b: 1, c: 1}", "{a: 1, b: 1, c: 1}", "{a: 2, b: 1, c: 1}"},
        {"scheduled: {a: 2, b: 1, c: 1}", "scheduled: {a: 2, b: 1}", "{a: 2, b: 1}", "{a: 2, b: 1, c: 1}"},
        {"preempted: []", "preempted: [b]", "[b]", "[]"},
        {"waiting: [d]", "waiting: []", "[]", "[d]"},
        {"running: [a, b, c]", "running: [b, a, c]", "[b, a, c]", "[a, b, c]"},
        {"finished: {e: length}", "finished: {e: stop}", "{e: stop}", "{e: length}"},
        {"finished: {e: length}", "finished: {}", "{}", "{e: length}"},
        {"in_flight: {a: 0}", "in_flight: {a: 1}", "{a: 1}", "{a: 0}"},
        {"computed: {a: 9, d: 0}", "computed: {a: 8}", "{a: 8}", "{a: 9}"},
        {"computed: {a: 9}", "computed: {e: 4}", "{e: 4}", "{e: ended}"},
        {"cached_tokens: {b: 8, e: 0}", "cached_tokens: {b: 4}", "{b: 4}", "{b: 8}"},
        {"drafts: {a: 1}", "drafts: {a: 0}", "{a: 0}", "{a: 1}"},
        {"preemptions: {a: 0, e: 0}", "preemptions: {a: 1}", "{a: 1}", "{a: 0}"},
        {"text: {d: []}", "text: {d: [1]}", "{d: [1]}", "{d: []}"},
        {"stop_reason: {e: '', a: has not ended}", "stop_reason: {e: x}", "{e: x}", "{e: }"},
        {"decoded: {a: nine, b: ''}", "decoded: {a: ten}", "{a: ten}", "{a: nine}"},
        {"sum: {scheduled: 4, drafts: 1}", "sum: {scheduled: 5}", "{scheduled: 5}", "{scheduled: 4}"},
        {"sum: {cached_tokens: 8, computed: 23, preemptions: 0}", "sum: {cached_tokens: 4}", "{cached_tokens: 4}",
         "{cached_tokens: 8}"},
        {"count: {running: 3, waiting: 1, finished: 1, swapped: 0}", "count: {running: 2}", "{running: 2}",
         "{running: 3}"},
        {"count: {scheduled: 3, preempted: 0}", "count: {scheduled: 2}", "{scheduled: 2}", "{scheduled: 3}"},
        {"references: {a/0: 2, b/0: 2, c/0: 1, e/0: 0}", "references: {e/0: 1}", "{e/0: 1}", "{e/0: 0}"},
        {"references: {a/2: 1, b/2: 1}", "references: {a/9: 0}", "{a/9: 0}", "{a/9: gone}"},
        {"evicted_next: [e/0]", "evicted_next: [e/0, a/0]", "[e/0, a/0]", "[e/0]"},
        {"kv_events: {stored: [a/0, a/1, e/0, c/0], removed: []}", "kv_events: {stored: [a/0]}", "{stored: [a/0]}",
         "{stored: [a/0, a/1, e/0, c/0]}"},
        {"kv_events: {stored: 4, cleared: 0}", "kv_events: {stored: '<= 3'}", "{stored: <= 3}", "{stored: 4}"},
        {"drafted_tokens: 0", "drafted_tokens: 1", "1", "0"},
        {"accepted_tokens: 0", "accepted_tokens: 1", "1", "0"},
        {"steps: 2", "steps: 3", "3", "2"},
        {"free_pages: 95", "free_pages: 96", "96", "95"},
        {"free_pages: '>= 95'", "free_pages: '>= 96'", ">= 96", "95"},
        {"free_pages: '<= 95'", "free_pages: '<= 94'", "<= 94", "95"},
        {"free_pages: 95..95", "free_pages: 96..99", "96..99", "95"},
        {"computed: {a: 9..10}", "computed: {e: '>= 0'}", "{e: >= 0}", "{e: ended}"}, // which is no number
        {"cached_pages: 1", "cached_pages: 0", "0", "1"},
        {"swapped: []", "swapped: [d]", "[d]", "[]"},
        {"free_swap_pages: 0", "free_swap_pages: 1", "1", "0"},
        {"hit_tokens: 8", "hit_tokens: 0", "0", "8"},
        {"query_tokens: 26", "query_tokens: 0", "0", "26"},
        {"plan_faults: 0", "plan_faults: 1", "1", "0"},
        {"kv_policy_faults: 0", "kv_policy_faults: 1", "1", "0"},
        {"policy: fcfs", "policy: sjf", "sjf", "fcfs"},
    };
    std::set<std::string> seen;
    for (const auto& e : each) {
        const std::string wrong = e.wrong, name = wrong.substr(0, wrong.find(':'));
        EXPECT_EQ(outcome_of(kBusy + "  - expect: {" + e.right + "}\n"), "");
        EXPECT_EQ(outcome_of(kBusy + "  - expect: {" + wrong + "}\n"),
                  difference("10: step 7: " + name, e.expected, e.got));
        seen.insert(name);
    }
    EXPECT_EQ(seen.size(), subjects().size());
}

std::string expecting(const std::string& what) { return kBusy + "  - expect: {" + what + "}\n"; }

TEST(ScenarioFile, NamesWhatANumberMayBe) {
    const std::string form = ", expected a whole number, \">= 3\", \"<= 9\" or 2..5";
    const struct {
        const char *given, *guess;
    } each[] = {{"x", ""},           {"'> 3'", " (did you mean \">= 4\"?)"}, {"'< 3'", " (did you mean \"<= 2\"?)"},
                {"'< 0'", ""},       {"== 3", " (did you mean 3?)"},         {"5..2", " (did you mean 2..5?)"},
                {"2..", " (did you mean \">= 2\"?)"}, {"-1", ""},            {"2000000000000", ""}};
    for (const auto& [given, guess] : each) {
        const std::string text = given, shown = text.starts_with('\'') ? "the string " + text : "'" + text + "'";
        EXPECT_EQ(faults_of(expecting("free_pages: " + text)),
                  "s.yaml:10:26: 'free_pages' is " + shown + form + guess);
    }
    EXPECT_EQ(faults_of(expecting("free_pages: [1]")), "s.yaml:10:26: 'free_pages' is a list" + form);
}

TEST(ScenarioFile, NamesTotalsThatThereAreNot) {
    EXPECT_EQ(faults_of(expecting("sum: {schedulled: 4}")),
              "s.yaml:10:20: unknown key 'schedulled' (did you mean 'scheduled'?)");
    EXPECT_EQ(faults_of(expecting("count: {runing: 4}")),
              "s.yaml:10:22: unknown key 'runing' (did you mean 'running'?)");
    EXPECT_EQ(faults_of(expecting("sum: 4")), "s.yaml:10:19: 'sum' is '4', expected a map of keys");
}

TEST(ScenarioFile, NamesBlocksThatAreNone) {
    EXPECT_EQ(faults_of(expecting("references: {a: 1, f/0: 1, a/x: 1, a/01: 1}")),
              "s.yaml:10:14: 'a' names no block, expected a request and a number such as a/0\n"
              "s.yaml:10:14: 'a/01' names no block, expected a request and a number such as a/0\n"
              "s.yaml:10:14: 'a/x' names no block, expected a request and a number such as a/0\n"
              "s.yaml:10:14: no request 'f' was added before (did you mean 'a'?)");
    EXPECT_EQ(faults_of(expecting("evicted_next: []")),
              "s.yaml:10:28: 'evicted_next' names no block (to expect none: cached_pages: 0)");
    EXPECT_EQ(faults_of("kv_policy: lru\n" + expecting("evicted_next: [e/0]")),
              "s.yaml:11:14: 'evicted_next' beside kv_policy, which chooses when a block is needed (what it chose: "
              "kv_events: {removed: [...]})");
    EXPECT_EQ(faults_of(expecting("kv_events: {store: 1}")),
              "s.yaml:10:26: unknown key 'store' (did you mean 'stored'?)");
    EXPECT_THAT(faults_of(expecting("kv_events: {cleared: [a/0]}")), HasSubstr("'kv_events.cleared' is a list, exp"));
    std::string many;
    for (int i = 0; i < 4097; ++i) many += (i ? ", a/" : "a/") + std::to_string(i);
    EXPECT_EQ(faults_of(expecting("evicted_next: [" + many + "]")),
              "s.yaml:10:14: 4097 blocks, expected at most 4096");
}

TEST(ScenarioFile, ExpectsSomethingOfEachMap) {
    for (const char* key : {"in_flight", "computed", "cached_tokens", "drafts", "preemptions", "stop_reason", "text",
                            "sum", "count", "references"})
        EXPECT_THAT(faults_of(expecting(key + std::string(": {}"))),
                    EndsWith("'" + std::string(key) + "' names nothing, and so expects nothing"));
    EXPECT_EQ(faults_of(expecting("kv_events: {}")), "s.yaml:10:25: 'kv_events' names nothing, and so expects nothing "
                                                     "(to expect none: {stored: 0, removed: 0, cleared: 0})");
    EXPECT_EQ(faults_of(expecting("scheduled: {}, finished: {}")), "");
}

TEST(ScenarioFile, NamesFormsAndTextsThatThereCannotBe) {
    const auto adding = [](const std::string& what, const std::string& model = "") {
        return faults_of(model + "steps:\n  - add: [{id: a, prompt: 4, " + what + "}]\n");
    };
    const std::string vocabulary = "model: {vocabulary: {1: one}}\n";
    EXPECT_EQ(adding("stop: [one]"), "s.yaml:2:11: 'stop' without model.vocabulary: tokens have no text");
    EXPECT_EQ(adding("structured_outputs: {regex: a}"),
              "s.yaml:2:11: 'structured_outputs' without model.vocabulary: tokens have no text");
    EXPECT_EQ(adding("structured_outputs: {regex: a, choice: [a]}", vocabulary),
              "s.yaml:3:50: 'structured_outputs' has 2 forms, expected one of choice, regex, json and grammar");
    EXPECT_EQ(adding("structured_outputs: {regx: a}", vocabulary),
              "s.yaml:3:50: 'structured_outputs' has 0 forms, expected one of choice, regex, json and grammar\n"
              "s.yaml:3:51: unknown key 'regx' (did you mean 'regex'?)");
    EXPECT_EQ(adding("structured_outputs: {regex: " + std::string(5000, 'a') + "}", vocabulary),
              "s.yaml:3:11: 'structured_outputs' has 5000 bytes, expected at most 4096");
    std::string many;
    for (int i = 0; i < 33; ++i)
        many += (i ? ", " : "") + ("{id: r" + std::to_string(i)) + ", prompt: 1, structured_outputs: {regex: a}}";
    EXPECT_EQ(faults_of(vocabulary + "steps:\n  - add: [" + many + "]\n"),
              "s.yaml:3:1729: the file has 33 requests with structured_outputs up to here, expected at most 32");
    EXPECT_THAT(adding("stop: ['']", vocabulary), HasSubstr("'stop' has a string of 0 bytes, expected 1 to 256"));
    EXPECT_EQ(faults_of("steps:\n  - add: [{id: a, prompt: 4}]\n  - expect: {decoded: {a: x}}\n"),
              "s.yaml:3:14: 'decoded' without model.vocabulary: tokens have no text");
    EXPECT_THAT(outcome_of(vocabulary + "steps:\n  - add: [{id: a, prompt: 4, structured_outputs: {regex: '('}}]\n"),
                HasSubstr("got       it is refused: structured_outputs: "));
}

TEST(ScenarioFile, NamesLayersAndTokensThatThereCannotBe) {
    const auto model = [](const std::string& what) { return faults_of("model: {" + what + "}\nsteps: []\n"); };
    EXPECT_EQ(model("layer_types: [sliding], sliding_window: 8"),
              "s.yaml:1:23: 'layer_types' is 'sliding', expected one of full_attention, sliding_attention");
    EXPECT_EQ(model("layer_types: [sliding_attention]"),
              "s.yaml:1:22: 'layer_types' has a layer of sliding_attention, and there is no sliding_window");
    EXPECT_EQ(model("layer_types: [full_attention], sliding_window: 8"),
              "s.yaml:1:22: 'layer_types' has no layer of sliding_attention for the sliding_window");
    EXPECT_EQ(model("layer_types: []"),
              "s.yaml:1:22: 'layer_types' is an empty list, expected a list of 1 to 8 layers");
    EXPECT_EQ(model("vocabulary: {32000: a, x: b, 1: ''}"),
              "s.yaml:1:22: '32000' is not a token id, expected 0 to 31999\n"
              "s.yaml:1:32: 'x' is not a token id, expected 0 to 31999\n"
              "s.yaml:1:41: 'vocabulary.1' is the string '', expected a string of 1 to 64 bytes");
}

}  // namespace
}  // namespace patchbay::scenario::expectations_test
