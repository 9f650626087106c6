// Watched folders: files are reported when they are whole, and a new build of a plugin in use is announced or adopted.
#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>

#include "paths.hpp"
#include "serve/admin_client.hpp"
#include "serve/folder_watch.hpp"
#include "serve/new_builds.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing::watch_test {
namespace {

namespace fs = std::filesystem;

class Seen {
  public:
    void add(const fs::path& file) {
        const std::lock_guard lock(mutex_);
        files_.push_back(file.filename().string());
        changed_.notify_all();
    }
    std::vector<std::string> wait_for(const std::string& file) { // all until then
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return std::ranges::find(files_, file) != files_.end(); });
        return files_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> files_;
};

TEST(FolderWatch, ReportsAFileOnceItIsWhole) {
    const TemporaryFolder folder, elsewhere;
    Seen seen;
    const auto watch = FolderWatch::start({folder.path()}, [&](const fs::path& file, int) { seen.add(file); });
    ASSERT_TRUE(watch) << watch.error();
    std::ofstream half(folder.path() / "half.so");
    half << "the first half" << std::flush;
    std::ofstream(folder.path() / "whole.so") << "all of it";
    EXPECT_THAT(seen.wait_for("whole.so"), ::testing::ElementsAre("whole.so"));
    half << ", and the second";
    half.close();
    std::ofstream(elsewhere.path() / "moved.so") << "all of it";
    fs::rename(elsewhere.path() / "moved.so", folder.path() / "moved.so");
    EXPECT_THAT(seen.wait_for("moved.so"), ::testing::ElementsAre("whole.so", "half.so", "moved.so"));
}

TEST(FolderWatch, EndsAfterTheFileThatItIsAbout) {
    const TemporaryFolder folder;
    Seen seen;
    std::promise<void> all_there;
    std::unique_ptr<FolderWatch> watch;
    auto started = FolderWatch::start({folder.path()}, [&](const fs::path& file, int) {
        if (file.filename() == "first.so") all_there.get_future().wait();
        else watch->stop();
        seen.add(file);
    });
    ASSERT_TRUE(started) << started.error();
    watch = *std::move(started);
    std::ofstream(folder.path() / "first.so") << "x";
    for (const char* name : {"a.so", "b.so", "c.so"}) std::ofstream(folder.path() / name) << "x";
    all_there.set_value();
    seen.wait_for("a.so");
    watch.reset();
    EXPECT_THAT(seen.wait_for("a.so"), ::testing::ElementsAre("first.so", "a.so"));
}

TEST(FolderWatch, SaysWhichFolderCannotBeWatched) {
    const auto watch = FolderWatch::start({"/nowhere"}, [](const fs::path&, int) {});
    ASSERT_FALSE(watch);
    EXPECT_EQ(watch.error(), "cannot watch /nowhere: No such file or directory");
}

TEST(FolderWatch, GoesOnInAFolderThatIsMadeAgain) {
    const TemporaryFolder above;
    const fs::path folder = above.path() / "plugins", open = above.path() / "open";
    for (const fs::path& f : {open, folder}) fs::create_directory(f);
    Seen seen;
    const auto watch = FolderWatch::start({open, folder}, [&](const fs::path& file, int) { seen.add(file); });
    ASSERT_TRUE(watch) << watch.error();
    fs::remove(open);
    fs::remove(folder);
    const fs::path part = above.path() / "part";
    fs::create_directory(part);
    fs::permissions(part, fs::perms::all);
    std::ofstream(part / "of_others.so") << "x";
    fs::rename(part, open);
    fs::create_directory(folder);
    std::ofstream(folder / "there.so") << "x";
    EXPECT_THAT(seen.wait_for("there.so"), ::testing::Not(::testing::Contains("of_others.so")))
        << "others may write there now";
    std::ofstream(folder / "later.so") << "x";
    seen.wait_for("later.so");
    fs::rename(folder, above.path() / "moved");
    fs::create_directory(folder);
    std::ofstream(folder / "last.so") << "x";
    seen.wait_for("last.so");
}

// Builds of fcfs by their manifests alone: a digest of the same digit throughout each.
class BuildsOf : public ::testing::Test {
  protected:
    static std::string sha256(char digit) { return std::string(64, digit); }
    // What is reported where this one is in the folder and that one in the slot.
    std::string reported(char there, char in_slot) {
        const fs::path file = fs::path(kBuildDir) / "lib/patchbay/plugins/scheduler-fcfs.plugin.json";
        Json manifest = Json::parse(std::ifstream(file));
        manifest["sha256"] = sha256(there);
        std::ofstream(folder_.path() / "scheduler-fcfs.so") << there;
        std::ofstream(folder_.path() / "scheduler-fcfs.plugin.json") << manifest;
        const auto registry = host::Registry::open({folder_.path()});
        if (!registry) throw std::runtime_error(registry.error());
        SlotStatus slot;
        slot.identity.kind = "scheduler";
        slot.identity.name = "fcfs";
        slot.identity.sha256 = sha256(in_slot);
        journal_ = {};
        journal_.slots.push_back(slot);
        return digits(builds_.look(journal_, *registry));
    }
    std::string unused() const { return digits(builds_.unused(journal_)); }

  private:
    static std::string digits(const std::vector<NewBuild>& builds) {
        std::string out;
        for (const NewBuild& b : builds) out += b.sha256[0];
        return out;
    }
    const TemporaryFolder folder_;
    JournalState journal_;
    NewBuilds builds_;
};

TEST_F(BuildsOf, AreNewAgainAfterAnotherTookTheirPlace) {
    EXPECT_EQ(reported('a', 'a'), "");
    EXPECT_EQ(reported('b', 'a'), "b");
    EXPECT_EQ(reported('a', 'b'), "a");
    EXPECT_EQ(reported('b', 'a'), "b");
    EXPECT_EQ(reported('c', 'b'), "c");
    EXPECT_EQ(unused(), "c") << "what is gone can no longer be adopted";
}

TEST_F(BuildsOf, AreReportedOnceAlsoWhereTheyWereRolledBack) {
    EXPECT_EQ(reported('b', 'a'), "b");
    EXPECT_EQ(reported('b', 'b'), "");
    EXPECT_EQ(unused(), "");
    EXPECT_EQ(reported('b', 'a'), "");
    EXPECT_EQ(unused(), "b");
}

class Watching { // a server whose fcfs and llama lie in a folder of its own
  public:
    explicit Watching(config::WatchMode mode)
        : found(filled(folder.path())), server(options(mode), config(mode), found) {}

    // As an editor, or a linker, that writes beside and moves.
    void replace_build(const char* other = "swap_other_builds/other-fcfs.so", const char* file = "scheduler-fcfs.so") {
        fs::copy_file(fs::path(kBuildDir) / "tests" / other, folder.path() / "part");
        fs::rename(folder.path() / "part", folder.path() / file);
    }
    Json status() const {
        const auto answer = ask_admin(server.server->admin()->address(), "GET", "/status");
        if (!answer) throw std::runtime_error(answer.error());
        return Json::parse(answer->body);
    }
    static Json scheduler(const Json& status) { return slot(status, "scheduler"); }
    static Json slot(const Json& status, const char* kind) {
        for (const Json& s : status["slots"])
            if (s["kind"] == kind) return s;
        return {};
    }
    Json until(const std::function<bool(const Json&)>& holds) const {
        Json now;
        do now = status();
        while (!holds(now));
        return now;
    }

    const TemporaryFolder folder;
    const host::Registry found;
    const Running server;

  private:
    static config::EngineConfig config(config::WatchMode mode) {
        config::EngineConfig c = Running::demo_model();
        c.swap.watch = mode;
        return c;
    }
    static host::Registry filled(const fs::path& folder) {
        const fs::path built = fs::path(kBuildDir) / "lib/patchbay/plugins";
        for (const char* file : {"scheduler-fcfs", "model-llama"})
            for (const char* part : {".so", ".plugin.json"})
                fs::copy_file(built / (file + std::string(part)), folder / (file + std::string(part)));
        auto all = host::Registry::open({folder});
        if (!all) throw std::runtime_error(all.error());
        return *std::move(all);
    }
    ServerOptions options(config::WatchMode mode) {
        AdminAddress address;
        address.socket = folder.path() / "admin.sock";
        ServerOptions out;
        out.admin = AdminOptions{std::move(address), [this] { return host::Registry::open({folder.path()}); },
                                 config(mode)};
        return out;
    }
};

TEST(AdminWatch, AnnouncesANewBuildAndLeavesTheSlotAsItIs) {
    Watching w(config::WatchMode::kAnnounce);
    const Json before = w.status();
    EXPECT_EQ(before["new_builds"], Json::array());
    w.replace_build();
    const Json after = w.until([](const Json& now) { return !now["new_builds"].empty(); });
    ASSERT_EQ(after["new_builds"].size(), 1u);
    EXPECT_EQ(after["new_builds"][0]["plugin"], "fcfs");
    EXPECT_NE(after["new_builds"][0]["sha256"], Watching::scheduler(before)["sha256"]);
    EXPECT_EQ(Watching::scheduler(after)["sha256"], Watching::scheduler(before)["sha256"]);
    const char* const counted = "patchbay_plugin_new_builds_total{kind=\"scheduler\"} 1\n"; // right after
    while (get(w.server.port(), "/metrics").body.find(counted) == std::string::npos) {
    }
}

TEST(AdminWatch, AdoptsANewBuildOfAPluginInUse) {
    Watching w(config::WatchMode::kAdopt);
    const Json before = Watching::scheduler(w.status());
    w.replace_build();
    const Json after = w.until([](const Json& now) { return Watching::scheduler(now)["generation"] == 2; });
    EXPECT_NE(Watching::scheduler(after)["sha256"], before["sha256"]);
    EXPECT_EQ(Watching::scheduler(after)["plugin"], "fcfs");
    EXPECT_EQ(w.until([](const Json& now) { return now["new_builds"].empty(); })["state"], "running");
}

class Environment { // during the object's life
  public:
    Environment(const char* name, const std::string& value) : name_(name) {
        if (const char* const before = std::getenv(name)) before_ = before;
        setenv(name, value.c_str(), 1);
    }
    ~Environment() {
        if (before_) setenv(name_, before_->c_str(), 1);
        else unsetenv(name_);
    }
    Environment(const Environment&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

bool has_left_a_file(const fs::path& folder) { // a plugin in its probe
    std::error_code gone;
    for (fs::recursive_directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone))
        if (at->path().filename().string().starts_with("left-by-a-plugin-")) return true;
    return false;
}

TEST(AdminWatch, EndsThoughAProbeIsUnderWay) {
    const TemporaryFolder temporary;
    const Environment folder("TMPDIR", temporary.path()), timeout("PATCHBAY_PROBE_TIMEOUT_S", "3600");
    {
        Watching w(config::WatchMode::kAnnounce);
        w.replace_build("host/leaves_a_file.so");
        wait_until("probe", [&] { return has_left_a_file(temporary.path()); });
    }
    EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(AdminWatch, AdoptsANewBuildOfTheModelsPluginWithItsWeights) {
    Watching w(config::WatchMode::kAdopt);
    const Json before = Watching::slot(w.status(), "model");
    const Json text = w.server.complete({{"prompt", "The king"}, {"temperature", 0}, {"max_tokens", 12}})["choices"];
    w.replace_build("swap_other_models/other-llama.so", "model-llama.so");
    const Json after = w.until([](const Json& now) { return Watching::slot(now, "model")["generation"] == 2; });
    EXPECT_NE(Watching::slot(after, "model")["sha256"], before["sha256"]);
    EXPECT_EQ(Watching::slot(after, "model")["plugin"], "llama");
    EXPECT_EQ(w.server.complete({{"prompt", "The king"}, {"temperature", 0}, {"max_tokens", 12}})["choices"], text);
    EXPECT_EQ(w.until([](const Json& now) { return now["new_builds"].empty(); })["state"], "running");
}

}  // namespace
}  // namespace patchbay::serve::testing::watch_test
