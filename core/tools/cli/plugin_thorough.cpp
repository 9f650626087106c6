#include "cli/plugin_thorough.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <vector>

#include "base/printable.hpp"
#include "base/temporary_folder.hpp"
#include "cli/report_command.hpp"
#include "cli/run_program.hpp"
#include "host/probe.hpp"
#include "scenario/random_world.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;
using scenario::World;

constexpr uint32_t kRounds = 4;        // of the checks, each with a seed of its own
constexpr size_t kWorldsAtOnce = 20;   // that one process plays
constexpr uint32_t kMaxTries = 400;    // to make a failing world smaller

struct FolderOfWorlds {
    fs::path path;
    ~FolderOfWorlds() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
};

struct Failing { // what is wrong in a world: "drain", "plan_faults", "ended by signal 11"
    std::string what, detail;
};

class WorldTest {
  public:
    WorldTest(const ThoroughTest& test, std::string kind, std::string name, const fs::path& folder)
        : test_(test), kind_(std::move(kind)), name_(std::move(name)), folder_(folder) {}

    Result<> run() {
        for (uint32_t first = 0; first < test_.worlds; first += kWorldsAtOnce) {
            std::vector<std::string> files;
            const uint32_t end = std::min<uint32_t>(first + kWorldsAtOnce, test_.worlds);
            for (uint32_t i = first; i < end; ++i) files.push_back(write(scenario::random_world(test_.seed + i)));
            ProgramRun together = play(files);
            if (together.status == 0) continue;
            const uint32_t unplayable = unplayable_;
            for (uint32_t i = first; i < end; ++i)
                if (const auto wrong = failing(scenario::random_world(test_.seed + i)))
                    return report(test_.seed + i, *wrong);
            if (unplayable_ > unplayable) continue; // which may be why
            if (together.status == ProgramRun::kTimedOut) // each had as long alone
                together = play(files, end - first);
            if (together.status != 0) return report_together(std::move(files), together);
        }
        if (unplayable_ > 0) // a fault of what draws worlds, or a plugin that no engine takes
            return fail(test_.library + ": thorough.worlds: " + kind_ + "/" + name_ + ": " +
                        std::to_string(unplayable_) + " of " + std::to_string(test_.worlds) +
                        " worlds cannot be played: " + reason_);
        std::cout << "ok       thorough.worlds  " << kind_ << '/' << name_ << ": " << test_.worlds
                  << " worlds from seed " << test_.seed << '\n';
        return {};
    }

  private:
    std::string write(const World& w) {
        const fs::path file = folder_ / ("world" + std::to_string(++files_) + ".yaml");
        std::ofstream(file) << scenario::text_of(w, kind_, name_, "a random world");
        return file.string();
    }
    // times: of the time for one.
    ProgramRun play(const std::vector<std::string>& files, uint32_t times = 1) const {
        std::vector<std::string> words{"/proc/self/exe", "scenario", "run", "--plugin-dir", plugin_folder()};
        words.insert(words.end(), files.begin(), files.end());
        return run_quietly(words, std::max(test_.timeout_s / 4, 5u) * times);
    }
    std::string plugin_folder() const {
        const fs::path folder = fs::path(test_.library).parent_path();
        return folder.empty() ? "." : folder.string();
    }
    static std::string last_line(const std::string& output) {
        const std::string text = output.substr(0, output.find_last_not_of('\n') + 1);
        return text.substr(text.rfind('\n') + 1);
    }
    // None: the plugin does in it what it should, or there is no such world.
    std::optional<Failing> failing(const World& w) {
        const std::string file = write(w);
        const ProgramRun played = play({file});
        fs::remove(file);
        if (played.status == ProgramRun::kTimedOut) return Failing{"it hangs", "no end within the time"};
        if (played.status >= 128)
            return Failing{"signal " + std::to_string(played.status - 128), last_line(played.output)};
        if (played.status != 1) {
            unplayable_ += played.status != 0;
            if (played.status != 0) reason_ = played.output.substr(0, played.output.find('\n'));
            return {};
        }
        const size_t at = played.output.find(file + ":"); // the difference; what is logged may stand before it
        if (at == std::string::npos) return Failing{"it ends", played.output};
        const std::string text = played.output.substr(at);
        const size_t end = text.find('\n'), colon = text.rfind(": ", end);
        std::string detail = end == std::string::npos ? "" : text.substr(end + 1);
        while (!detail.empty() && detail.back() == '\n') detail.pop_back();
        return Failing{text.substr(colon + 2, end == std::string::npos ? end : end - colon - 2), detail};
    }
    // The smallest world found that fails in the same way.
    World shrink(World w, Failing& wrong) {
        uint32_t tries = 0;
        for (bool found = true; found && tries < kMaxTries;) {
            found = false;
            for (const World& smaller : scenario::smaller_worlds(w)) {
                if (++tries > kMaxTries) break;
                const auto again = failing(smaller);
                if (!again || again->what != wrong.what) continue;
                w = smaller;
                wrong = *again;
                found = true;
                break;
            }
        }
        return w;
    }
    // Worlds that each pass in a process of their own: as few of them as still fail, but for a hang.
    Result<> report_together(std::vector<std::string> files, ProgramRun wrong) {
        for (size_t i = files.size(); i-- > 0 && files.size() > 2 && wrong.status != ProgramRun::kTimedOut;) {
            std::vector<std::string> fewer = files;
            fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
            ProgramRun again = play(fewer);
            if (again.status != wrong.status) continue;
            files = std::move(fewer);
            wrong = std::move(again);
        }
        std::string kept;
        for (size_t i = 0; i < files.size(); ++i) {
            const fs::path to = fs::path(plugin_folder()) / (name_ + ".together-" + std::to_string(i + 1) + ".yaml");
            std::error_code failed;
            fs::copy_file(files[i], to, fs::copy_options::overwrite_existing, failed);
            if (failed) return fail("cannot write " + to.string() + ": " + failed.message());
            kept += ' ' + in_shell_quotes(to.string());
        }
        const std::string what = wrong.status == ProgramRun::kTimedOut ? "no end within the time"
                                 : wrong.status >= 128 ? "signal " + std::to_string(wrong.status - 128)
                                                       : "exit code " + std::to_string(wrong.status);
        const std::string why = std::to_string(files.size()) + " worlds fail only when they share a process: " + what;
        std::cout << "FAILED   thorough.worlds  " << kind_ << '/' << name_ << ": " << why
                  << "; does it keep anything beyond its objects?\n"
                  << "  the last that it prints: " << printable_message(last_line(wrong.output)) << '\n'
                  << "again: patchbay scenario run --plugin-dir " << in_shell_quotes(plugin_folder()) << kept << '\n';
        return fail(test_.library + ": thorough.worlds: " + kind_ + "/" + name_ + ": " + why);
    }
    Result<> report(uint64_t seed, Failing wrong) {
        const World first = scenario::random_world(seed);
        const World small = shrink(first, wrong);
        const fs::path file = fs::path(plugin_folder()) / (name_ + ".world-" + std::to_string(seed) + ".yaml");
        const std::string remark = kind_ + " " + name_ + " fails in this world, made of seed " + std::to_string(seed) +
                                   ": " + wrong.what;
        std::ofstream out(file);
        out << scenario::text_of(small, kind_, name_, remark);
        out.close();
        if (!out) return fail("cannot write " + file.string());
        std::cout << "FAILED   thorough.worlds  " << kind_ << '/' << name_ << ": " << printable_message(wrong.what)
                  << ", in a world of seed " << seed << " that has " << small.events.size() << " events of "
                  << first.events.size() << '\n';
        std::istringstream lines(wrong.detail);
        for (std::string line; std::getline(lines, line);) std::cout << printable_message(line) << '\n';
        std::cout << "again: patchbay scenario run --plugin-dir "
                  << in_shell_quotes(plugin_folder()) << ' ' << in_shell_quotes(file.string()) << '\n';
        return fail(test_.library + ": thorough.worlds: " + kind_ + "/" + name_ + ": " + wrong.what + " (" +
                    file.string() + ")");
    }

    const ThoroughTest& test_;
    const std::string kind_, name_;
    const fs::path& folder_;
    std::string reason_; // why one of them is not
    uint32_t files_ = 0, unplayable_ = 0; // worlds that are no scenario
};

// The checks, with other random cases in each round.
Result<> repeat_checks(const ThoroughTest& test) {
    for (uint64_t seed = test.seed; seed < test.seed + kRounds; ++seed) {
        setenv("PATCHBAY_PROBE_SEED", std::to_string(seed).c_str(), 1); // read by the child that probes
        const auto report = host::probe(test.library, {{}, test.timeout_s});
        unsetenv("PATCHBAY_PROBE_SEED");
        if (!report) return report.failure();
        for (const host::CheckLine& line : report->lines) {
            if (line.outcome != host::CheckOutcome::kFailed) continue;
            std::cout << "FAILED   " << line.check << "  " << line.component << ": " << printable_message(line.reason)
                      << " (seed " << seed << ")\nagain: PATCHBAY_PROBE_SEED=" << seed << " patchbay plugin test "
                      << in_shell_quotes(test.library) << '\n';
            return fail(test.library + ": " + line.check + " fails with seed " + std::to_string(seed) + ": " +
                        line.reason);
        }
    }
    std::cout << "ok       thorough.checks  the checks with " << kRounds << " other seeds from " << test.seed << '\n';
    return {};
}

}  // namespace

Result<> test_thoroughly(const ThoroughTest& test) {
    PB_CHECK(repeat_checks(test));
    PB_TRY(const host::Manifest manifest, host::read_manifest(host::manifest_path(test.library)));
    PB_TRY(const fs::path all, temporary_folder());
    std::string name = (all / "patchbay-worlds-XXXXXX").string();
    if (!mkdtemp(name.data())) return fail("cannot make a folder in " + all.string());
    const FolderOfWorlds folder{name};
    Result<> all_of_them;
    for (const host::ComponentManifest& c : manifest.components) {
        if (c.kind != "scheduler" && c.kind != "kv_policy") {
            std::cout << "skipped  thorough.worlds  " << c.kind << '/' << c.name
                      << ": worlds are played by schedulers and kv_policies\n";
            continue;
        }
        const Result<> done = WorldTest(test, c.kind, c.name, folder.path).run();
        if (all_of_them && !done) all_of_them = done;
    }
    return all_of_them;
}

}  // namespace patchbay::cli
