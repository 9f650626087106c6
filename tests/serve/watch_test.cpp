// Watched folders: files are reported when they are whole, and a new build of a plugin in use is announced or adopted.
#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>

#include "paths.hpp"
#include "serve/admin_client.hpp"
#include "serve/folder_watch.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing {
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
    const auto watch = FolderWatch::start({folder.path()}, [&](const fs::path& file) { seen.add(file); });
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

TEST(FolderWatch, SaysWhichFolderCannotBeWatched) {
    const auto watch = FolderWatch::start({"/nowhere"}, [](const fs::path&) {});
    ASSERT_FALSE(watch);
    EXPECT_EQ(watch.error(), "cannot watch /nowhere: No such file or directory");
}

class Watching { // a server whose fcfs lies in a folder of its own
  public:
    explicit Watching(config::WatchMode mode) : server(options(mode), config(mode)) {}

    void replace_build() { // as an editor, or a linker, that writes beside and moves
        const fs::path built = fs::path(kBuildDir) / "tests/swap_other_builds/other-fcfs.so";
        fs::copy_file(built, folder.path() / "fcfs.part");
        fs::rename(folder.path() / "fcfs.part", folder.path() / "scheduler-fcfs.so");
    }
    Json status() const {
        const auto answer = ask_admin(server.server->admin()->address(), "GET", "/status");
        if (!answer) throw std::runtime_error(answer.error());
        return Json::parse(answer->body);
    }
    static Json scheduler(const Json& status) {
        for (const Json& s : status["slots"])
            if (s["kind"] == "scheduler") return s;
        return {};
    }
    Json until(const std::function<bool(const Json&)>& holds) const {
        Json now;
        do now = status();
        while (!holds(now));
        return now;
    }

    const TemporaryFolder folder;
    const Running server;

  private:
    static config::EngineConfig config(config::WatchMode mode) {
        config::EngineConfig c = Running::demo_model();
        c.swap.watch = mode;
        return c;
    }
    ServerOptions options(config::WatchMode mode) {
        const fs::path built = fs::path(kBuildDir) / "lib/patchbay/plugins";
        for (const char* file : {"scheduler-fcfs.so", "scheduler-fcfs.plugin.json"})
            fs::copy_file(built / file, folder.path() / file);
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
    EXPECT_THAT(get(w.server.port(), "/metrics").body,
                ::testing::HasSubstr("patchbay_plugin_new_builds_total{kind=\"scheduler\"} 1\n"));
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

}  // namespace
}  // namespace patchbay::serve::testing
