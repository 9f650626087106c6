// The child in which a plugin runs first: what it may do to us, and what is written down afterwards.
#include "host/probe.hpp"

#include <elf.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "host/registry.hpp"
#include "unit/host/host_fixture.hpp"
#include "paths.hpp"

namespace patchbay::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const ProbeOptions kOptions{std::string(kBuildDir) + "/bin/patchbay-probe", 60};

class ProbeTest : public HostTest {
  protected:
    static ProbeReport probed(const fs::path& library) { return must(probe(library, kOptions)); }
};

TEST_F(ProbeTest, WhatAPluginPrintsDoesNotMixWithOurOutput) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const ProbeReport report = probed(built("prints"));
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("out loud"));
    EXPECT_EQ(report.verdict, Verdict::kOk) << report.reason;
}

TEST_F(ProbeTest, APluginCannotReadWhatIsTypedForUs) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "yes\n", 4), 4);
    const int before = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    const ProbeReport report = probed(built("reads"));
    char typed[8];
    EXPECT_EQ(::read(STDIN_FILENO, typed, sizeof typed), 4) << "it was read away";
    dup2(before, STDIN_FILENO);
    for (const int fd : {before, ends[0], ends[1]}) close(fd);
    EXPECT_EQ(report.verdict, Verdict::kOk) << report.reason;
}

TEST_F(ProbeTest, WhatAPluginLeavesRunningEndsWithItsProbe) {
    int ends[2];  // every process of the probe inherits the writing end: the last to go closes it
    ASSERT_EQ(pipe(ends), 0);
    const ProbeReport report = probed(built("leaves_a_child"));
    close(ends[1]);
    pollfd last{ends[0], POLLIN, 0};
    EXPECT_EQ(poll(&last, 1, 30'000), 1);
    EXPECT_TRUE(last.revents & POLLHUP) << "a process of the plugin lives on";
    close(ends[0]);
    EXPECT_EQ(report.verdict, Verdict::kOk) << report.reason;
}

TEST_F(ProbeTest, LeavesNothingInTheCache) {
    probed(built("says_one"));
    EXPECT_FALSE(fs::exists(cache_));
}

// Where in a library's file stands what tells the loader its symbols: cut before it, there are none.
size_t dynamic_section(const std::string& library) {
    Elf64_Ehdr header;
    std::memcpy(&header, library.data(), sizeof header);
    for (size_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        std::memcpy(&segment, library.data() + header.e_phoff + i * header.e_phentsize, sizeof segment);
        if (segment.p_type == PT_DYNAMIC) return segment.p_offset;
    }
    throw std::runtime_error("no shared library");
}

// As a plugin is found that is still being written or was not fetched whole.
TEST_F(ProbeTest, ALibraryThatIsCutOffIsRefused) {
    const std::string bytes = bytes_of(built("says_one"));
    const fs::path file = folder_ / "p.so";
    for (const size_t quarters : {1u, 2u, 3u, 4u}) {
        write(file, bytes.substr(0, dynamic_section(bytes) * quarters / 4));
        const ProbeReport report = probed(file);
        EXPECT_EQ(report.verdict, Verdict::kRefused) << quarters << "/4 of the way";
        EXPECT_FALSE(report.manifest);
    }
}

TEST_F(ProbeTest, AManifestIsWrittenOfWhatPassesAndVouchesForItsBytes) {
    const fs::path file = folder_ / "answer.so";
    write(file, bytes_of(built("says_one")));
    const ProbeReport report = must(probe_and_record(file, kOptions));
    ASSERT_EQ(report.verdict, Verdict::kOk) << report.reason;
    const Manifest m = must(read_manifest(folder_ / "answer.plugin.json"));
    EXPECT_EQ(manifest_text(m), manifest_text(manifest_of(file)));
    for (const CheckLine& line : report.lines) EXPECT_NE(line.outcome, CheckOutcome::kFailed) << line.check;
}

TEST_F(ProbeTest, ARefusalTakesTheOlderManifestAway) {
    const fs::path file = folder_ / "answer.so";
    install("says_one", file);
    write(file, bytes_of(built("aborts")));
    const ProbeReport report = must(probe_and_record(file, kOptions));
    EXPECT_EQ(report.verdict, Verdict::kRefused);
    EXPECT_EQ(report.check, "file.loads");
    EXPECT_THAT(report.reason, StartsWith("ended by signal 6"));
    EXPECT_FALSE(fs::exists(manifest_path(file)));
}

TEST_F(ProbeTest, ARefusalIsKeptBesideTheLibraryUntilItPasses) {
    const fs::path file = folder_ / "proposer-answer.so";
    write(file, bytes_of(built("aborts")));
    const ProbeReport refused = must(probe_and_record(file, kOptions));
    ASSERT_EQ(refused.verdict, Verdict::kRefused);
    EXPECT_EQ(recorded_refusal(file), refused.check + ": " + refused.reason);
    const Registry registry = must(Registry::open({folder_.path()}));
    EXPECT_THAT(registry.remarks(), Contains(HasSubstr("answer.so: refused by its probe: file.loads: ended by")));
    EXPECT_THAT(error_of(registry.find("proposer", "answer")),
                AllOf(StartsWith("no proposer 'answer': "), HasSubstr("refused by its probe: file.loads: ended by")));

    write(file, bytes_of(built("says_one")));
    ASSERT_EQ(must(probe_and_record(file, kOptions)).verdict, Verdict::kOk);
    EXPECT_EQ(recorded_refusal(file), "");
}

TEST_F(ProbeTest, AForgedRefusalIsOneReadableLine) {
    write(folder_ / "answer.so", "a library");
    write(folder_ / "answer.refused.txt", "\x1b[2Jfine\a\nall is well\n" + std::string(1 << 20, 'x'));
    EXPECT_EQ(recorded_refusal(folder_ / "answer.so"), "?[2Jfine?");
}

TEST_F(ProbeTest, TheEnvironmentMaySetItsLimits) {
    EXPECT_EQ(must(probe_limits()).timeout_s, 60u);
    EXPECT_EQ(must(probe_limits()).memory_mib, 4096u);
    const Variable timeout("PATCHBAY_PROBE_TIMEOUT_S", "7");
    {
        const Variable memory("PATCHBAY_PROBE_MEMORY_MIB", "1");
        EXPECT_EQ(must(probe_limits()).timeout_s, 7u);
        EXPECT_EQ(probed(built("says_one")).verdict, Verdict::kRefused) << "in 1 MiB";
    }
    const Variable memory("PATCHBAY_PROBE_MEMORY_MIB", "0");
    EXPECT_EQ(probed(built("says_one")).verdict, Verdict::kOk);
    const Variable wrong("PATCHBAY_PROBE_TIMEOUT_S", "a minute");
    EXPECT_EQ(error_of(probe(built("says_one"), kOptions)),
              "PATCHBAY_PROBE_TIMEOUT_S is 'a minute', expected a whole number from 1 to 86400");
}

TEST_F(ProbeTest, AManifestThatCannotBeWrittenIsAFailureNotAVerdict) {
    const fs::path file = folder_ / "answer.so";
    write(file, bytes_of(built("says_one")));
    fs::create_directories(manifest_path(file) / "in the way");
    EXPECT_THAT(error_of(probe_and_record(file, kOptions)), StartsWith("cannot write " + manifest_path(file).string()));
}

TEST_F(ProbeTest, WithoutItsProgramThereIsNoVerdict) {
    EXPECT_EQ(error_of(probe(built("says_one"), {folder_ / "nobody", 60})),
              "there is no probe program " + (folder_ / "nobody").string());
    write(folder_ / "text", "no program");
    EXPECT_THAT(error_of(probe(built("says_one"), {folder_ / "text", 60})),
                StartsWith("cannot start " + (folder_ / "text").string()));
}

}  // namespace
}  // namespace patchbay::host
