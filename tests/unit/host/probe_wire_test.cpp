// The probe's verdict is written by a process in which unknown code runs: none of it is believed without checking.
#include "host/probe_wire.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::probe_wire_test {
namespace {

using ::testing::HasSubstr;

const fs::path kLibrary = "somewhere/p.so";

Manifest manifest() { return {kLibrary, "p", "1.0.0", "gcc", std::string(64, 'a'), 1, 0, {}}; }

// What a writer says into a pipe.
template <class F>
std::string written(F&& f) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    ProbeWriter writer(ends[1]);
    f(writer);
    close(ends[1]);
    std::string out;
    char part[4096];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) out.append(part, static_cast<size_t>(n));
    close(ends[0]);
    return out;
}

TEST(ProbeWire, WhatIsWrittenIsReadBack) {
    const Manifest m = manifest();
    const ProbeTranscript t =
        read_transcript(written([&](ProbeWriter& w) {
                            w.line({"", "file.loads", CheckOutcome::kOk, ""});
                            w.line({"scheduler/a", "scheduler.budget", CheckOutcome::kFailed, "9 tokens\nof 8"});
                            w.line({"scheduler/a", "component.state", CheckOutcome::kSkipped, "it is stateless"});
                            w.done(&m);
                        }),
                        kLibrary);
    EXPECT_EQ(t.fault, "");
    EXPECT_TRUE(t.done);
    EXPECT_FALSE(t.open);
    ASSERT_EQ(t.lines.size(), 3u);
    EXPECT_EQ(t.lines[1].component, "scheduler/a");
    EXPECT_EQ(t.lines[1].check, "scheduler.budget");
    EXPECT_EQ(t.lines[1].outcome, CheckOutcome::kFailed);
    EXPECT_EQ(t.lines[1].reason, "9 tokens\\nof 8") << "in one line";
    EXPECT_EQ(t.lines[2].outcome, CheckOutcome::kSkipped);
    ASSERT_TRUE(t.manifest);
    EXPECT_EQ(manifest_text(*t.manifest), manifest_text(m));
}

TEST(ProbeWire, ACheckThatDoesNotEndIsToBlame) {
    const std::string text = written([](ProbeWriter& w) {
        w.line({"", "file.loads", CheckOutcome::kOk, ""});
        w.begin("scheduler/a", "scheduler.answers");
    });
    for (const std::string& end : {std::string(), std::string("{\"end\": \"o")}) {  // killed in mid-word, too
        const ProbeTranscript t = read_transcript(text + end, kLibrary);
        ASSERT_TRUE(t.open);
        EXPECT_EQ(t.open->check, "scheduler.answers");
        EXPECT_FALSE(t.done);
        EXPECT_EQ(t.lines.size(), 1u);
    }
}

TEST(ProbeWire, NothingAfterTheVerdictCounts) {
    const Manifest m = manifest();
    const std::string refused = written([](ProbeWriter& w) { w.done(nullptr); }),
                      passed = written([&](ProbeWriter& w) { w.done(&m); });
    const ProbeTranscript t = read_transcript(refused + passed, kLibrary);
    EXPECT_TRUE(t.done);
    EXPECT_FALSE(t.manifest);
}

TEST(ProbeWire, WhatNoProbeWritesIsAFault) {
    const auto fault = [](const std::string& line) { return read_transcript(line + "\n", kLibrary).fault; };
    EXPECT_THAT(fault("hello"), HasSubstr("the probe's verdict:1:1: invalid JSON"));
    EXPECT_EQ(fault("{\"verdict\": \"ok\"}"), "the probe's verdict has a line that is none");
    EXPECT_EQ(fault("{\"end\": \"ok\", \"reason\": \"\"}"), "the probe's verdict has a line that is none")
        << "an end without a beginning";
    EXPECT_EQ(fault("{\"begin\": \"c\", \"component\": \"\"}\n{\"end\": \"fine\", \"reason\": \"\"}"),
              "the probe's verdict has an unknown outcome");
    EXPECT_THAT(fault("{\"begin\": 1, \"component\": \"\"}"), HasSubstr("cannot be read"));
    EXPECT_THAT(fault("{\"done\": true}"), HasSubstr("cannot be read"));
    EXPECT_THAT(fault("[]"), HasSubstr("a line that is none"));
    EXPECT_THAT(fault("{\"done\": true, \"manifest\": {\"name\": \"p\"}}"), HasSubstr("not a plugin manifest"));
    EXPECT_THAT(fault(std::string(100, '[')), HasSubstr("levels deep"));
}

TEST(ProbeWire, AManifestThatWouldBeRefusedAsAFileIsRefusedHere) {
    Manifest m = manifest();
    m.sha256 = "0";
    const ProbeTranscript t = read_transcript(written([&](ProbeWriter& w) { w.done(&m); }), kLibrary);
    EXPECT_FALSE(t.manifest);
    EXPECT_THAT(t.fault, HasSubstr("'sha256' must be 64 hexadecimal digits"));
}

TEST(ProbeEnding_, IsReadBackAndNothingElseIs) {
    using How = ProbeEnding::How;
    for (const How how : {How::kExited, How::kSignal, How::kTimeout, How::kMemory, How::kTasks}) {
        const ProbeEnding read = read_ending(ending_line({how, 4ull << 30}));
        EXPECT_EQ(read.how, how);
        EXPECT_EQ(read.value, 4ull << 30);
    }
    for (const char* line : {"", "x", "9 9\n", "-1 0\n", "1"}) EXPECT_EQ(read_ending(line).how, How::kLost) << line;
    EXPECT_EQ(describe(ProbeEnding{How::kSignal, 6}), "ended by signal 6 (Aborted)");
}

}  // namespace
}  // namespace patchbay::host::probe_wire_test
