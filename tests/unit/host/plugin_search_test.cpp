// What a search makes of the folders given to it.
#include "host/plugin_search.hpp"

#include <sys/stat.h>

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::plugin_search_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Whose = PluginSearch::Whose;

class PluginSearchTest : public HostTest {
  protected:
    fs::path folder(const std::string& name) const {
        fs::create_directories(folder_ / name);
        return folder_ / name;
    }
    // In both, in this order: a plugin, and a library that was never probed before it.
    FoundPlugins found_in(Whose whose) const {
        PluginSearch search;
        for (const char* name : {"one", "two"}) {
            install("says_one", folder(name) / "z.so");
            write(folder(name) / "a.so", "never probed");
            search.add_folder(folder(name), whose);
        }
        return search.take();
    }
};

TEST_F(PluginSearchTest, KeepsTheOrderOfFoldersAndWithinThemOfNames) {
    const FoundPlugins found = found_in(Whose::kOwn);
    EXPECT_THAT(found.folders, ElementsAre(folder("one"), folder("two")));
    ASSERT_EQ(found.manifests.size(), 2u);
    EXPECT_EQ(found.manifests[0].library, folder("one") / "z.so");
    EXPECT_EQ(found.manifests[1].library, folder("two") / "z.so");
}

TEST_F(PluginSearchTest, WhatCannotBeUsedStandsInTheWayOfWhatFollowsInOwnFoldersOnly) {
    const FoundPlugins own = found_in(Whose::kOwn), shipped = found_in(Whose::kShipped);
    EXPECT_EQ(own.remarks.size(), 2u);
    ASSERT_EQ(own.obstacles.size(), 2u);
    EXPECT_EQ(own.obstacles[0].before, 0u);
    EXPECT_EQ(own.obstacles[1].before, 1u);
    EXPECT_EQ(own.obstacles[1].reason, own.remarks[1]);
    EXPECT_EQ(shipped.remarks, own.remarks);
    EXPECT_THAT(shipped.obstacles, IsEmpty());
}

TEST_F(PluginSearchTest, ALibraryThatIsNoPluginIsLeftOutAndNothingStopsAtIt) {
    const std::string bytes = bytes_of(built("is_no_plugin"));
    write(folder("p") / "libfoo.so", bytes);
    write(folder("cut") / "libfoo.so", bytes.substr(0, bytes.size() - 1));  // it may have been a plugin
    install("says_one", folder("p") / "z.so");
    PluginSearch whole, cut;
    whole.add_folder(folder("p"), Whose::kOwn);
    cut.add_folder(folder("cut"), Whose::kOwn);
    const FoundPlugins found = whole.take();
    EXPECT_THAT(found.remarks,
                ElementsAre((folder("p") / "libfoo.so").string() + ": no plugin: it exports no pb_plugin_v1"));
    EXPECT_THAT(found.obstacles, IsEmpty());
    EXPECT_EQ(found.manifests.size(), 1u);
    EXPECT_EQ(cut.take().obstacles.size(), 1u);
}

TEST_F(PluginSearchTest, APluginThatWasNeverProbedIsNotTakenForAnotherLibrary) {
    write(folder("p") / "z.so", bytes_of(built("says_one")));
    PluginSearch search;
    search.add_folder(folder("p"), Whose::kOwn);
    EXPECT_EQ(search.take().obstacles.size(), 1u);
}

TEST_F(PluginSearchTest, AFolderOpenToAllIsRefusedWhosever) {
    chmod(folder("open").c_str(), 0777);
    for (const Whose whose : {Whose::kOwn, Whose::kShipped}) {
        PluginSearch search;
        search.add_folder(folder("open"), whose);
        const FoundPlugins found = search.take();
        EXPECT_THAT(found.folders, IsEmpty());
        ASSERT_EQ(found.remarks.size(), 1u);
        EXPECT_EQ(found.obstacles.size(), whose == Whose::kOwn ? 1u : 0u);
    }
}

TEST_F(PluginSearchTest, FilesOpenToAllAreRefusedInOwnFolders) {
    const fs::path library = folder("p") / "z.so";
    install("says_one", library);
    chmod(library.c_str(), 0777);
    PluginSearch own, shipped;
    own.add_folder(folder("p"), Whose::kOwn);
    shipped.add_folder(folder("p"), Whose::kShipped);
    EXPECT_THAT(own.take().manifests, IsEmpty());
    EXPECT_EQ(shipped.take().manifests.size(), 1u);
}

TEST_F(PluginSearchTest, ANameThatIsNoFolderIsPassedOver) {
    write(folder_ / "file", "");
    PluginSearch search;
    search.add_folder(folder_ / "file", Whose::kOwn);
    search.add_folder(folder_ / "absent", Whose::kOwn);
    search.add_remark("a remark");
    const FoundPlugins found = search.take();
    EXPECT_THAT(found.folders, IsEmpty());
    EXPECT_THAT(found.remarks, ElementsAre("a remark"));
}

}  // namespace
}  // namespace patchbay::host::plugin_search_test
