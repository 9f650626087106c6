// The child in which a plugin runs first: what it may do to us, and what is written down afterwards.
#include "host/probe.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/child_process.hpp"
#include "host/registry.hpp"
#include "unit/host/host_fixture.hpp"
#include "paths.hpp"

namespace patchbay::host::probe_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsLimited = false; // a sanitizer's own memory is not the plugin's, so the probe sets no limit
#else
constexpr bool kMemoryIsLimited = true;
#endif

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

TEST_F(ProbeTest, WhatAPluginLogsIsShownWhereItIsAskedFor) {
    const auto shown_at = [](const char* level) {
        const Variable log("PATCHBAY_LOG", level);
        ::testing::internal::CaptureStderr();
        (void)probed(built("talker"));
        return ::testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(shown_at(nullptr), "");
    EXPECT_THAT(shown_at("warn"), HasSubstr("warning: scheduler talker: "));
    EXPECT_THAT(shown_at("warn"), ::testing::Not(HasSubstr("a detail")));
    EXPECT_THAT(shown_at("debug"), HasSubstr("debug: scheduler talker: a detail\n"));
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

// Every process that is started while it lives inherits a pipe's writing end: the last to go closes it.
class Inheritance {
  public:
    Inheritance() {
        EXPECT_EQ(pipe(ends_), 0);
        const int low = std::exchange(ends_[1], fcntl(ends_[1], F_DUPFD, 100)); // a probe has its own 3 and 4
        close(low);
    }
    ~Inheritance() {
        for (const int fd : ends_)
            if (fd >= 0) close(fd);
    }
    // Whether all have gone, or go soon.
    bool all_gone() {
        close(std::exchange(ends_[1], -1));
        pollfd last{ends_[0], POLLIN, 0};
        return poll(&last, 1, 30'000) == 1 && (last.revents & POLLHUP);
    }

  private:
    int ends_[2] = {-1, -1};
};

TEST_F(ProbeTest, WhatAPluginLeavesRunningEndsWithItsProbe) {
    for (const char* plugin : {"leaves_a_child", "leaves_a_session"}) {
        Inheritance processes;
        const ProbeReport report = probed(built(plugin));
        EXPECT_TRUE(processes.all_gone()) << "a process of " << plugin << " lives on";
        EXPECT_EQ(report.verdict, Verdict::kOk) << report.reason;
    }
}

TEST_F(ProbeTest, SharedMemoryCountsToo) {
    if (!kMemoryIsLimited) GTEST_SKIP() << "probes have no memory limit under a sanitizer";
    const Variable limit("PATCHBAY_PROBE_MEMORY_MIB", "128");
    const ProbeReport report = probed(built("shares_memory"));
    EXPECT_EQ(report.verdict, Verdict::kRefused);
    EXPECT_THAT(report.reason, HasSubstr("took more memory than the 128 MiB of a probe"));
    EXPECT_EQ(probed(built("says_one")).verdict, Verdict::kOk) << "which needs little";
}

TEST_F(ProbeTest, ProcessesAreLimited) {
    Inheritance processes;
    const ProbeReport report = probed(built("starts_many"));
    EXPECT_TRUE(processes.all_gone());
    EXPECT_EQ(report.verdict, Verdict::kRefused);
    EXPECT_THAT(report.reason, HasSubstr("started more than 512 processes and threads"));
}

// The temporary folder of a test, whose probes are killed or kill.
class ProbeLeftovers : public ProbeTest {
  protected:
    fs::path temporary_ = folder_ / "tmp";
    bool made_ = fs::create_directories(temporary_);
    Variable variable_{"TMPDIR", temporary_};

    bool is_empty() const { return fs::is_empty(temporary_); }
    bool left_a_file() const {
        for (const auto& probe_folder : fs::directory_iterator(temporary_)) {
            std::error_code gone;
            for (fs::directory_iterator at(probe_folder, gone), end; !gone && at != end; at.increment(gone))
                if (at->path().filename().string().starts_with("left-by-a-plugin-")) return true;
        }
        return false;
    }
};

TEST_F(ProbeLeftovers, GoWithAProbeThatTakesTooLong) {
    const ProbeReport report = must(probe(built("leaves_a_file"), {kOptions.program, 1}));
    EXPECT_EQ(report.verdict, Verdict::kRefused);
    EXPECT_THAT(report.reason, HasSubstr("the probe took longer than 1 s in all: killed during this check"));
    EXPECT_TRUE(is_empty());
}

TEST_F(ProbeLeftovers, GoWithAProbeThatIsBrokenOff) {
    Inheritance processes;
    const Descriptor stop(eventfd(0, EFD_CLOEXEC));
    ProbeOptions options = kOptions;
    options.timeout_s = 3600; // which nothing here waits for
    options.stop = stop.get();
    std::atomic<bool> ended = false;
    std::thread stopper([&] {
        while (!left_a_file() && !ended) poll(nullptr, 0, 5);
        const uint64_t one = 1;
        (void)!::write(stop.get(), &one, sizeof one);
    });
    const auto report = probe(built("leaves_a_file"), options);
    ended = true;
    stopper.join();
    EXPECT_EQ(error_of(report), "its probe was broken off");
    EXPECT_EQ(report.code(), StatusCode::kCancelled);
    EXPECT_TRUE(processes.all_gone());
    EXPECT_TRUE(is_empty());
}

TEST_F(ProbeLeftovers, GoWithACallerThatIsKilled) {
    Inheritance processes;
    const pid_t caller = fork();
    if (caller == 0) {
        (void)probe(built("leaves_a_file"), kOptions);
        _exit(0);
    }
    while (!left_a_file() && waitpid(caller, nullptr, WNOHANG) == 0) poll(nullptr, 0, 5);
    kill(caller, SIGKILL);
    waitpid(caller, nullptr, 0);
    EXPECT_TRUE(processes.all_gone());
    EXPECT_TRUE(is_empty());
}

TEST_F(ProbeLeftovers, OfAKilledSupervisorGoWithTheNextProbe) {
    const fs::path left = temporary_ / "patchbay-probe-killed", young = temporary_ / "patchbay-probe-young";
    for (const fs::path& path : {left, young}) fs::create_directories(path / "in");
    fs::create_directories(temporary_ / "of-another-program");
    fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
    probed(built("says_one"));
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(young)) << "it may not be locked yet";
    EXPECT_TRUE(fs::exists(temporary_ / "of-another-program"));
}

TEST_F(ProbeTest, LeavesNothingInTheCache) {
    probed(built("says_one"));
    EXPECT_FALSE(fs::exists(cache_));
}

// Where a library's file describes its symbols to the loader: cut before it, there are none.
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

TEST_F(ProbeTest, ARefusalOfWhatIsNoLongerThereLeavesTheNewerBuildAlone) {
    const fs::path file = folder_ / "answer.so", newer = folder_ / "newer.so";
    install("says_one", file); // its manifest is there, as another probe wrote it
    write(newer, bytes_of(file));
    write(file, bytes_of(built("gives_way")));
    const Variable from("NEWER_BUILD", newer), to("THIS_BUILD", file);
    EXPECT_EQ(error_of(probe_and_record(file, kOptions)), "it changed while it was probed");
    EXPECT_EQ(manifest_text(must(read_manifest(manifest_path(file)))), manifest_text(manifest_of(file)));
    EXPECT_EQ(recorded_refusal(file), "");
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
    EXPECT_EQ(recorded_refusal(folder_ / "answer.so"), "\\x1b[2Jfine\\x07");
}

TEST_F(ProbeTest, TheEnvironmentMaySetItsLimits) {
    EXPECT_EQ(must(probe_limits()).timeout_s, 60u);
    EXPECT_EQ(must(probe_limits()).memory_mib, 4096u);
    const Variable timeout("PATCHBAY_PROBE_TIMEOUT_S", "7");
    {
        const Variable memory("PATCHBAY_PROBE_MEMORY_MIB", "1");
        EXPECT_EQ(must(probe_limits()).timeout_s, 7u);
        if (kMemoryIsLimited) {
            EXPECT_EQ(probed(built("says_one")).verdict, Verdict::kRefused) << "in 1 MiB";
        }
    }
    const Variable memory("PATCHBAY_PROBE_MEMORY_MIB", "0");
    EXPECT_EQ(probed(built("says_one")).verdict, Verdict::kOk);
    const Variable wrong("PATCHBAY_PROBE_TIMEOUT_S", "a minute");
    EXPECT_EQ(error_of(probe(built("says_one"), kOptions)),
              "PATCHBAY_PROBE_TIMEOUT_S is 'a minute', expected a whole number from 1 to 86400");
    EXPECT_EQ(probe_limits().code(), StatusCode::kInvalid);
}

TEST_F(ProbeTest, AManifestThatCannotBeWrittenIsAFailureNotAVerdict) {
    const fs::path file = folder_ / "answer.so";
    write(file, bytes_of(built("says_one")));
    fs::create_directories(manifest_path(file) / "in the way");
    EXPECT_THAT(error_of(probe_and_record(file, kOptions)), StartsWith("cannot write " + manifest_path(file).string()));
}

// A probe program that does something first, with the probe that is meant.
ProbeOptions with_program(const fs::path& file, const std::string& commands) {
    write(file, "#!/bin/sh\n" + commands + "\nexec '" + kOptions.program.string() + "' \"$@\"\n");
    fs::permissions(file, fs::perms::owner_all);
    return {file, 60};
}

TEST_F(ProbeTest, AFaultOfTheMachineIsNoRefusal) {
    const fs::path file = folder_ / "answer.so";
    install("says_one", file);
    const std::string manifest = bytes_of(manifest_path(file));
    const auto killed = probe_and_record(file, with_program(folder_ / "killed", "kill -9 $$"));
    EXPECT_EQ(error_of(killed), "cannot be probed here: the supervisor of its process could not begin, or was killed, "
                                "by this machine or by the library");
    const auto full = probe_and_record(file, with_program(folder_ / "full", "ulimit -f 0"));
    EXPECT_THAT(error_of(full), AllOf(StartsWith("cannot be probed here: cannot write "), HasSubstr("File too large")));
    EXPECT_EQ(bytes_of(manifest_path(file)), manifest) << "it still vouches for these bytes";
    EXPECT_EQ(recorded_refusal(file), "");
}

TEST_F(ProbeTest, WithoutItsProgramThereIsNoVerdict) {
    EXPECT_EQ(error_of(probe(built("says_one"), {folder_ / "missing", 60})),
              "there is no probe program " + (folder_ / "missing").string());
    write(folder_ / "text", "no program");
    EXPECT_THAT(error_of(probe(built("says_one"), {folder_ / "text", 60})),
                StartsWith("cannot start " + (folder_ / "text").string()));
}

}  // namespace
}  // namespace patchbay::host::probe_test
