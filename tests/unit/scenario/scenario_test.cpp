// Scenario files: the faults of invalid files, and that each kind of expectation can fail.
#include <gmock/gmock.h>

#include <set>

#include "played.hpp"
#include "file_text.hpp"

namespace patchbay::scenario::scenario_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// ---- what is no scenario -----------------------------------------------------------------------

TEST(ScenarioFile, NamesEveryFaultAtItsPlaceWithAGuess) {
    EXPECT_EQ(faults_of("polcy: fcfs\n"
                        "engine: {num_block: 4, block_size: 24}\n"
                        "steps:\n"
                        "  - add: [{id: a, prompt: 8, prioritty: 1}, {id: a, prompt: 8}, {prompt: x}]\n"
                        "  - expct: {running: [a]}\n"
                        "  - expect: {runing: [a], scheduled: {a: x}, finished: {a: stopped}}\n"
                        "  - abort: [ab]\n"
                        "  - reset_prefix_cache: don\n"),
              "s.yaml:1:1: unknown key 'polcy' (did you mean 'policy'?)\n"
              "s.yaml:2:10: unknown key 'num_block' (did you mean 'num_blocks'?)\n"
              "s.yaml:2:36: 'block_size' is 24, expected a power of two\n"
              "s.yaml:4:30: unknown key 'prioritty' (did you mean 'priority'?)\n"
              "s.yaml:4:45: 'a' was added before\n"
              "s.yaml:4:65: 'id' is missing: what the file calls it: a word\n"
              "s.yaml:4:74: 'prompt' is 'x', expected a whole number\n"
              "s.yaml:5:5: unknown key 'expct' (did you mean 'expect'?)\n"
              "s.yaml:6:14: unknown key 'runing' (did you mean 'running'?)\n"
              "s.yaml:6:42: 'scheduled.a' is 'x', expected a whole number, \">= 3\", \"<= 9\" or 2..5\n"
              "s.yaml:6:60: 'finished.a' is 'stopped', expected one of stop, length, abort, error\n"
              "s.yaml:7:12: no request 'ab' was added before (did you mean 'a'?)\n"
              "s.yaml:8:25: 'reset_prefix_cache' is 'don', expected one of done, refused (did you mean 'done'?)");
}

TEST(ScenarioFile, RefusesByNameWhatTheEngineDoesNotDo) {
    for (const char* key : {"best_of: 2", "prompt_logprobs: 1", "logprobs: 1"}) {
        const std::string name = std::string(key).substr(0, std::string(key).find(':'));
        EXPECT_THAT(faults_of(std::string("steps:\n  - add: [{id: a, prompt: 8, ") + key + "}]\n"),
                    HasSubstr("'" + name + "' is not in this engine: "));
    }
}

TEST(ScenarioFile, RefusesStepsThatNothingCanComeOf) {
    const std::string add = "  - add: [{id: a, prompt: 8}]\n";
    EXPECT_EQ(faults_of("steps:\n" + add + "  - draft: {a: [1]}\n"),
              "s.yaml:3:12: 'draft' without engine.num_speculative_tokens\n"
              "s.yaml:3:12: 'draft' stands directly after the 'output' or 'run' after which the proposer is asked");
    EXPECT_EQ(faults_of("steps:\n" + add + "  - in_flight: [a]\n"),
              "s.yaml:3:16: 'in_flight' without engine.async_scheduling: on");
    EXPECT_THAT(faults_of("engine: {async_scheduling: on, num_speculative_tokens: 1}\nsteps:\n" + add),
                HasSubstr("drafts follow from tokens that are back"));
    EXPECT_EQ(faults_of("steps:\n  - run: 1\n    drain: 2\n"),
              "s.yaml:2:5: a step has 2 keys, expected one (begin each step with '- ')");
    EXPECT_EQ(faults_of("steps:\n  - add: [{id: a, prompt: 8, n: 2}]\n  - abort: [a.1, a.2]\n"),
              "s.yaml:3:12: no request 'a.2' was added before (did you mean 'a.1'?)\n"
              "s.yaml:3:12: 'a.1' is one output of several, which are aborted together");
    EXPECT_EQ(faults_of("steps:\n" + add + "  - expect: {}\n"), "s.yaml:3:13: 'expect' expects nothing");
    EXPECT_EQ(faults_of("policy: fcsf\nsteps: []\n"), "s.yaml:1:9: no scheduler 'fcsf' (did you mean 'fcfs'?)");
    EXPECT_THAT(faults_of("engine: {}\n"), HasSubstr("'steps' is missing"));
}

TEST(ScenarioFile, BoundsWhatItAsksFor) {
    std::string many = "steps:\n  - add:\n";
    for (int i = 0; i < 17; ++i) many += "    - {id: r" + std::to_string(i) + ", prompt: {repeat: [5, 1048576]}}\n";
    EXPECT_EQ(faults_of(many), "s.yaml:19:7: the prompts of all outputs have 17825792 tokens up to here, expected at "
                               "most 16777216");
    EXPECT_THAT(faults_of("steps:\n  - add: [{id: a, prompt: 140000, n: 128}]\n"),
                HasSubstr("s.yaml:2:11: the prompts of all outputs have 17920000 tokens"));
    EXPECT_THAT(faults_of("steps:\n  - add: [{id: a, prompt: 1048577}]\n"), HasSubstr("expected 0 to 1048576"));
    EXPECT_THAT(faults_of("steps:\n  - add: [{id: a, prompt: {repeat: [1, 2000000]}}]\n"), HasSubstr("times 1 to"));
    EXPECT_EQ(faults_of("engine: {num_blocks: 1048576, block_size: 32}\nsteps: []\n"),
              "s.yaml:1:22: the blocks hold 33554432 tokens, expected at most 16777216");
    EXPECT_EQ(faults_of("engine: {num_swap_blocks: 1048576, block_size: 32}\nsteps: []\n"),
              "s.yaml:1:27: those of host memory hold 33554432 tokens, expected at most 16777216");
    EXPECT_THAT(faults_of("steps:\n  - run: 100001\n"), HasSubstr("expected 1 to 100000"));
    std::string long_one = "steps:\n", waits = long_one, swaps = long_one;
    for (int i = 0; i < 11; ++i) long_one += "  - run: 100000\n";
    EXPECT_EQ(faults_of(long_one), "s.yaml:12:10: the file has 1100000 steps, those of 'run' and 'drain' too, up to "
                                   "here, expected at most 1000000");
    for (int i = 0; i < 20; ++i) waits += "  - wait_ms: 1000000000000\n";
    EXPECT_EQ(faults_of(waits), "s.yaml:3:14: the file waits for 2000000000000 ms up to here, expected at most "
                                "1000000000000");
    for (int i = 0; i < 65; ++i) swaps += "  - swap: sjf\n";
    EXPECT_EQ(faults_of(swaps), "s.yaml:66:11: the file has 65 swaps up to here, expected at most 64");
    std::string crowd = "steps:\n  - add:\n";
    for (int i = 0; i < 513; ++i) crowd += "    - {id: r" + std::to_string(i) + ", prompt: 1, n: 128}\n";
    EXPECT_EQ(faults_of(crowd), "s.yaml:515:7: the requests have 65664 outputs and beams up to here, expected at most "
                                "65536");
    EXPECT_EQ(faults_of("steps:\n  - add: [{id: a, prompt: 1, beam_width: 17}]\n"),
              "s.yaml:2:42: 'beam_width' is 17, expected 0 to 16 beams");
    EXPECT_EQ(faults_of("steps:\n  - add: [{id: " + std::string(65, 'x') + ", prompt: 1}]\n"),
              "s.yaml:2:11: 'id' has 65 bytes, expected at most 64");
}

TEST(ScenarioFile, NamesTooManyEndTokens) {
    std::string tokens = "1";
    for (int i = 0; i < 16; ++i) tokens += ", 1";
    EXPECT_EQ(faults_of("model: {eos_token_ids: [" + tokens + "]}\nsteps:\n  - run: 1\n"),
              "s.yaml:1:24: 'eos_token_ids' has 17 tokens, expected at most 16");
    EXPECT_EQ(faults_of("steps:\n  - add: [{id: a, prompt: 1, stop_token_ids: [" + tokens + "]}]\n"),
              "s.yaml:2:11: 'stop_token_ids' has 17 tokens, expected at most 16");
}

// As outcome_of(), of a file that may make so much work.
std::string outcome_within(uint64_t work, const std::string& yaml) {
    const auto root = config::parse_yaml(yaml, "s.yaml");
    if (!root) return root.error();
    const auto scenario = load(*root, registry(), {.work = work});
    if (!scenario) return scenario.error();
    host::Prober prober({.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    const auto played = play(*scenario, registry(), prober);
    if (!played) return played.error();
    return played->difference ? played->difference->text() : "";
}

// Played within `enough`, not within `less`, which would do for its tokens and sequences alone.
void expect_work(const std::string& yaml, uint64_t enough, uint64_t less) {
    EXPECT_EQ(outcome_within(enough, yaml), "") << yaml;
    EXPECT_THAT(outcome_within(less, yaml), HasSubstr("expected  at most " + std::to_string(less) + " tokens")) << yaml;
}

TEST(ScenarioDifference, IsMoreWorkThanAFileMayMake) {
    const std::string yaml = "steps:\n  - add: [{id: a, prompt: 40, max_tokens: 90}]\n  - drain: 200\n";
    EXPECT_EQ(outcome_within(400, yaml), "");
    EXPECT_EQ(outcome_within(100, yaml),
              "s.yaml:3: step 2: the file\n"
              "  expected  at most 100 tokens that are computed and sequences that are looked at, or as much other "
              "work\n"
              "  got       more, after 21 steps of the engine");
}

TEST(ScenarioDifference, IsMoreWorkThanAFileMayMakeOfBeams) {
    const std::string ends = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]"; // times as many candidates
    expect_work("steps:\n  - add: [{id: a, prompt: 1, beam_width: 16, stop_token_ids: " + ends + "}]\n  - run: 3\n",
                8000, 1000);
    expect_work("engine: {max_num_batched_tokens: 8000}\nsteps:\n" // their length
                "  - add: [{id: a, prompt: {repeat: [7, 6400]}, beam_width: 2}]\n  - run: 10\n",
                10'000, 7500);
}

TEST(ScenarioDifference, IsMoreWorkThanAFileMayMakeOfPages) {
    const std::string small = "engine: {block_size: 1, num_blocks: 20000, max_num_batched_tokens: 20000}\nsteps:\n";
    expect_work(small + "  - add: [{id: a, prompt: {repeat: [7, 12800]}}]\n  - run: 10\n", 15'000, 13'300);
}

TEST(ScenarioDifference, IsMoreWorkThanAFileMayMakeOfExpectations) {
    std::string names, requests, again;
    for (int i = 0; i < 64; ++i) {
        requests += (i ? ", " : "") + ("{id: r" + std::to_string(i)) + ", prompt: 4}";
        names += (i ? ", r" : "r") + std::to_string(i) + ": 0";
    }
    expect_work("steps:\n  - add: [" + requests + "]\n  - expect: {computed: {" + names + "}}\n", 200, 100);
    for (int i = 0; i < 10; ++i) again += "  - expect: {policy: fcfs}\n"; // each looks at the pages that came back
    expect_work("engine: {block_size: 1, num_blocks: 20000, max_num_batched_tokens: 20000}\nsteps:\n"
                "  - add: [{id: a, prompt: {repeat: [7, 12800]}, max_tokens: 1}]\n  - run: 1\n" + again,
                15'000, 13'300);
}

TEST(ScenarioFile, ItsSchemaIsTheOneInTheDocumentation) {
    EXPECT_EQ(file_text(std::string(kSourceDir) + "/docs/scenario.schema.json"), json_schema() + "\n")
        << "patchbay scenario schema > docs/scenario.schema.json";
}

TEST(ScenarioFile, EverySubjectIsDocumented) {
    const std::string page = file_text(std::string(kSourceDir) + "/docs/scenarios.md");
    for (const SubjectInfo& s : subjects())
        EXPECT_THAT(page, HasSubstr("| `" + std::string(s.name) + "` |")) << s.description;
}

// ---- what differs -------------------------------------------------------------------------------

TEST(ScenarioDifference, IsTheFirstAndNothingIsPlayedAfterIt) {
    EXPECT_EQ(outcome_of("steps:\n"
                         "  - add: [{id: a, prompt: 8}]\n"
                         "  - expect:\n"
                         "      running: []\n"
                         "      free_pages: 7\n"
                         "  - expect: {free_pages: 8}\n"),
              difference("5: step 2: free_pages", "7", "1000"));
}

TEST(ScenarioDifference, IsAnOutputThatTheStepCannotMake) {
    const std::string drafted = "engine: {num_speculative_tokens: 2, max_num_batched_tokens: 8}\n"
                                "steps:\n"
                                "  - add: [{id: a, prompt: 4}, {id: b, prompt: 8}]\n";
    EXPECT_EQ(outcome_of(drafted + "  - output: {a: [1], b: [2]}\n"),
              difference("4: step 2: output", "{b: [2]}", "no token is sampled for b in this step"));
    EXPECT_EQ(outcome_of(drafted + "  - output: {a: [1, 2]}\n"),
              difference("4: step 2: output", "{a: [1, 2]}", "1 of them, as the drafts are {a: []}"));
    const std::string then = drafted + "  - output: {a: [1]}\n  - draft: {a: [5, 6]}\n";
    EXPECT_EQ(outcome_of(then + "  - output: {a: [5, 6, 7]}\n"), "");
    EXPECT_EQ(outcome_of(then + "  - output: {a: [5]}\n"),
              difference("6: step 4: output", "{a: [5]}", "2 of them, as the drafts are {a: [5, 6]}"));
    EXPECT_EQ(outcome_of(then + "  - output: {a: [4, 6]}\n"),
              difference("6: step 4: output", "{a: [4, 6]}", "1 of them, as the drafts are {a: [5, 6]}"));
    EXPECT_EQ(outcome_of(drafted + "  - output: {a: [1]}\n  - draft: {b: [5]}\n"),
              difference("5: step 3: draft", "the proposer is asked for b", "it is not asked"));
    EXPECT_EQ(outcome_of("engine: {num_speculative_tokens: 2, num_blocks: 2}\nsteps:\n"
                         "  - add: [{id: a, prompt: 4}, {id: b, prompt: 90, refused: exceed}]\n  - output: {}\n"
                         "  - draft: {b: [5]}\n"),
              difference("5: step 3: draft", "the proposer is asked for b", "it is not asked"));
    EXPECT_EQ(outcome_of("steps:\n  - add: [{id: a, prompt: 4, arrival_ms: 5}]\n  - abort: [a]\n"
                         "  - output: {a: [1]}\n"),
              difference("4: step 3: output", "{a: [1]}", "nothing is scheduled"));
}

TEST(ScenarioDifference, IsARequestThatIsRefusedOrIsNot) {
    const std::string head = "engine: {block_size: 4, num_blocks: 4}\nsteps:\n";
    EXPECT_EQ(outcome_of(head + "  - add: [{id: a, prompt: 40, refused: exceed max_model_len}]\n"), "");
    EXPECT_THAT(outcome_of(head + "  - add: [{id: a, prompt: 40}]\n"),
                HasSubstr("got       it is refused: a prompt of 40"));
    EXPECT_THAT(outcome_of(head + "  - add: [{id: a, prompt: 4, max_tokens: 1, refused: exceed}]\n"),
                HasSubstr("expected  it is refused: exceed\n  got       it is added"));
}

TEST(ScenarioDifference, IsALoadThatDoesNotEndInTime) {
    const std::string add = "steps:\n  - add: [{id: a, prompt: 4, max_tokens: 5}]\n";
    EXPECT_EQ(outcome_of(add + "  - drain: 5\n  - expect: {finished: {a: length}}\n"), "");
    EXPECT_EQ(outcome_of(add + "  - drain: 4\n"),
              difference("3: step 2: drain", "every request has ended after 4 steps", "waiting [], running [a]"));
}

TEST(ScenarioDifference, IsACacheThatIsResetOrIsNot) {
    const std::string run = "steps:\n  - add: [{id: a, prompt: 4}]\n  - run: 1\n";
    EXPECT_EQ(outcome_of(run + "  - reset_prefix_cache: refused\n"), "");
    EXPECT_THAT(outcome_of(run + "  - reset_prefix_cache: done\n"),
                HasSubstr("got       cannot reset the prefix cache: 1"));
    EXPECT_THAT(outcome_of("steps:\n  - reset_prefix_cache: refused\n"),
                HasSubstr("expected  refused\n  got       done"));
}

TEST(ScenarioDifference, IsAFlightOfOthersOrASecondOne) {
    const std::string add = "engine: {async_scheduling: on}\nsteps:\n"
                            "  - add: [{id: a, prompt: 4}, {id: b, prompt: 4}]\n";
    EXPECT_EQ(outcome_of(add + "  - in_flight: [a, b]\n  - output: {a: [1]}\n"), "");
    EXPECT_EQ(outcome_of(add + "  - in_flight: [a]\n"), difference("4: step 2: in_flight", "[a]", "[a, b]"));
    EXPECT_EQ(outcome_of(add + "  - in_flight: [a, b]\n  - in_flight: [a, b]\n"),
              difference("5: step 3: in_flight", "no other step is in flight", "one is"));
}

TEST(ScenarioFile, ChecksASwapBeforeItPlaysAnything) {
    EXPECT_EQ(faults_of("steps:\n  - swap: sfj\n"), "s.yaml:2:11: no scheduler 'sfj' (did you mean 'sjf'?)");
    EXPECT_THAT(faults_of("steps:\n  - swap: {plugin: sjf, agein: 1}\n"), HasSubstr("did you mean 'ageing'?"));
}

TEST(Scenario, PromptsThatAreMadeUpAreSharedWithNoOther) {
    EXPECT_EQ(outcome_of("engine: {block_size: 4}\nsteps:\n"
                         "  - add: [{id: a, prompt: 16}, {id: b, prompt: 16}]\n"
                         "  - expect: {scheduled: {a: 16, b: 16}, hit_tokens: 0}\n"),
              "");
}

TEST(Scenario, ItsClockMovesWithStepsAndWaitsOnly) {
    EXPECT_EQ(outcome_of("step_ms: 10\nsteps:\n"
                         "  - add: [{id: a, prompt: 4}, {id: b, prompt: 4, arrival_ms: 20}]\n"
                         "  - expect: {scheduled: {a: 4}}\n"
                         "  - output: {}\n"
                         "  - expect: {scheduled: {a: 1}, waiting: []}\n"
                         "  - output: {}\n"
                         "  - expect: {scheduled: {a: 1, b: 4}}\n"),
              "");
    EXPECT_EQ(outcome_of("step_ms: 0\nsteps:\n"
                         "  - add: [{id: a, prompt: 4}, {id: b, prompt: 4, arrival_ms: 20}]\n"
                         "  - run: 5\n"
                         "  - expect: {waiting: []}\n"
                         "  - wait_ms: 20\n"
                         "  - expect: {waiting: [b]}\n"),
              "");
}

}  // namespace
}  // namespace patchbay::scenario::scenario_test
