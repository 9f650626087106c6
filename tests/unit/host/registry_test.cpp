// Which plugins there are, in which order they are found, and what is said of those that are left out.
#include "host/registry.hpp"
#include "host/trusted_files.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/private_copy.hpp"
#include "unit/host/host_fixture.hpp"
#include "paths.hpp"

namespace patchbay::host::registry_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::IsEmpty;

const fs::path kBuildTree = fs::path(kBuildDir) / "lib/patchbay/plugins";

class RegistryTest : public HostTest {
  protected:
    fs::path folder(const std::string& name) const {
        fs::create_directories(folder_ / name);
        return folder_ / name;
    }
    // The registry of one folder with one plugin whose manifest is edited after the probe.
    Registry with(void (*edit)(Manifest&)) const {
        Manifest m = install("says_one", folder("p") / "answer.so");
        edit(m);
        EXPECT_TRUE(write_manifest(m, manifest_path(m.library)));
        return must(Registry::open({folder("p")}));
    }
    // Remarks of the folders of this test.
    std::vector<std::string> remarks(const Registry& r) const {
        std::vector<std::string> out;
        for (std::string remark : r.remarks())
            if (remark.starts_with(folder_.path().string() + "/"))
                out.push_back(remark.substr(folder_.path().string().size() + 1));
        return out;
    }
    static std::string making(const Registry& r, const char* name) {
        const auto made = r.proposer(name, {}, {});
        return made ? "made" : made.error();
    }
};

TEST_F(RegistryTest, FoldersAreSearchedInTheirOrderAndTheFirstOfANameWins) {
    install("says_two", folder("flag") / "z.so");
    install("says_one", folder("path1") / "a.so");
    install("says_one", folder("path2") / "a.so");
    const Variable path("PATCHBAY_PLUGIN_PATH", (folder("path1").string() + ":" + folder("path2").string()).c_str());
    const Registry all = must(Registry::open({folder("flag")}));
    EXPECT_THAT(all.folders(),
                ElementsAre(folder("flag"), folder("path1"), folder("path2"), fs::canonical(kBuildTree)));
    EXPECT_EQ(answer_of(*must(all.proposer("answer", {}, {})).component), 2);
    EXPECT_EQ(must(all.find("proposer", "answer"))->version, "2.0.0");

    const Registry without_flag = must(Registry::open({}));
    EXPECT_EQ(answer_of(*must(without_flag.proposer("answer", {}, {})).component), 1);
    const auto made = must(without_flag.proposer("answer", {}, {}));
    EXPECT_EQ(made.component->library()->path(), folder("path1") / "a.so");
}

TEST_F(RegistryTest, WithinAFolderTheFirstNameOfAFileWins) {
    install("says_two", folder("p") / "b.so");
    install("says_one", folder("p") / "a.so");
    EXPECT_EQ(answer_of(*must(must(Registry::open({folder("p")})).proposer("answer", {}, {})).component), 1);
}

TEST_F(RegistryTest, TheCurrentFolderIsNeverSearchedUnasked) {
    install("says_one", folder("here") / "answer.so");
    const fs::path before = fs::current_path();
    fs::current_path(folder("here"));
    const Variable path("PATCHBAY_PLUGIN_PATH", "::");
    const auto found = must(Registry::open({}));
    fs::current_path(before);
    EXPECT_FALSE(found.find("proposer", "answer"));
    EXPECT_THAT(found.remarks(), IsEmpty());
}

TEST_F(RegistryTest, AFolderThatIsNoneIsSaid) {
    write(folder_ / "file", "");
    fs::create_symlink("loop", folder_ / "loop");
    for (const char* name : {"missing", "file", "loop"}) {
        EXPECT_EQ(error_of(Registry::open({folder_ / name})),
                  "--plugin-dir " + (folder_ / name).string() + " is not a folder");
        const Variable path("PATCHBAY_PLUGIN_PATH", folder_ / name);
        EXPECT_THAT(remarks(must(Registry::open({}))),
                    ElementsAre(std::string(name) + ": no folder, though PATCHBAY_PLUGIN_PATH names it"));
    }
}

TEST_F(RegistryTest, AFolderThatAllUsersCanWriteToIsRefused) {
    install("says_one", folder("open") / "answer.so");
    chmod(folder("open").c_str(), 0777);
    const Registry r = must(Registry::open({folder("open")}));
    const std::string fault = "all users can write to " + folder("open").string() + " (chmod o-w " +
                              folder("open").string() + ")";
    EXPECT_THAT(remarks(r), ElementsAre("open: refused: " + fault));
    EXPECT_THAT(making(r, "answer"), AllOf(StartsWith("no proposer 'answer'"), HasSubstr(fault)));
    EXPECT_THAT(error_of(r.find("scheduler", "fcfs")), HasSubstr(fault)) << "the shipped one is not what was meant";
}

TEST_F(RegistryTest, WhatOthersCanWriteToIsRefused) {
    const Manifest m = install("says_one", folder("a/b") / "answer.so");
    const auto fault = [&] { return making(must(Registry::open({folder("a/b")})), "answer"); };
    ASSERT_EQ(fault(), "made");
    const fs::path json = manifest_path(m.library);
    for (const fs::path& path : {folder("a/b"), folder("a"), m.library, json}) {
        const mode_t mode = fs::is_directory(path) ? 0755 : 0644;
        chmod(path.c_str(), mode | 0002);
        EXPECT_THAT(fault(), HasSubstr("all users can write to " + path.string() + " (chmod o-w " + path.string()));
        if (geteuid() == 0) { // whose group is no private one
            chmod(path.c_str(), mode | 0020);
            EXPECT_THAT(fault(), HasSubstr("can write to " + path.string() + " (chmod g-w " + path.string()));
        }
        chmod(path.c_str(), mode);
    }
    chmod(folder("a").c_str(), 01777);
    EXPECT_EQ(fault(), "made") << "a sticky folder above, as /tmp is";
    chmod(folder("a").c_str(), 0755);
    chmod(folder("a/b").c_str(), 01777);
    EXPECT_THAT(fault(), HasSubstr("all users can write to ")) << "but not the folder itself";
    chmod(folder("a/b").c_str(), 0755);
    fs::create_directory_symlink(folder("a/b"), folder_ / "link");
    chmod(folder("a").c_str(), 0757);
    EXPECT_THAT(making(must(Registry::open({folder_ / "link"})), "answer"), HasSubstr(folder("a").string()));
}

TEST(PrivateGroup, IsOfTheUsersNameAndHasNoOtherMember) {
    const auto is_private = [](uid_t uid, std::vector<std::string> members, const char* name = "ann", gid_t gid = 7) {
        std::string user_name = "ann", group_name = name;
        std::vector<char*> list;
        for (std::string& m : members) list.push_back(m.data());
        list.push_back(nullptr);
        passwd user{};
        user.pw_name = user_name.data();
        user.pw_uid = uid;
        user.pw_gid = 7;
        ::group entry{};
        entry.gr_name = group_name.data();
        entry.gr_gid = gid;
        entry.gr_mem = list.data();
        return is_private_group(user, entry);
    };
    EXPECT_TRUE(is_private(1000, {}));
    EXPECT_TRUE(is_private(1000, {"ann"}));
    EXPECT_FALSE(is_private(1000, {"ann", "bob"}));
    EXPECT_FALSE(is_private(1000, {"bob"}));
    EXPECT_FALSE(is_private(1000, {}, "users")) << "another's name";
    EXPECT_FALSE(is_private(1000, {}, "ann", 8)) << "not the one of the user's files";
    EXPECT_FALSE(is_private(0, {})) << "root's, of services";
}

// The first user of this machine with a private group, as many services are; none: nullptr.
const passwd* user_with_private_group() {
    setpwent();
    for (const passwd* user; (user = getpwent());)
        if (const ::group* own = getgrgid(user->pw_gid); own && is_private_group(*user, *own)) return user;
    return nullptr;
}

TEST_F(RegistryTest, APrivateGroupOfTheOwnerMayWrite) {
    const passwd* user = user_with_private_group();
    if (geteuid() != 0 || !user) GTEST_SKIP() << "only root can give files away, to a user with a group of its own";
    const uid_t owner = user->pw_uid;
    const gid_t own_group = user->pw_gid;
    const fs::path program = folder("bin") / "program", plugins = folder("plugins");
    write(program, "");
    for (const fs::path& path : {program, plugins}) ASSERT_EQ(chown(path.c_str(), owner, own_group), 0);
    chmod(plugins.c_str(), 0775);
    EXPECT_EQ(TrustedFiles(program).fault(plugins), "");
    ASSERT_EQ(chown(plugins.c_str(), owner, 0), 0);
    chmod(plugins.c_str(), 0775);
    EXPECT_EQ(TrustedFiles(program).fault(plugins),
              "group 0 can write to " + plugins.string() + " (chmod g-w " + plugins.string() + ")");
}

TEST_F(RegistryTest, FoldersThatHoldTheProgramAreNotLookedAt) {
    const Manifest m = install("says_one", folder("a/b") / "answer.so");
    chmod(folder("a").c_str(), 0777);
    EXPECT_EQ(TrustedFiles(folder("a") / "program").fault(m.library), "");
    EXPECT_NE(TrustedFiles("/nowhere/program").fault(m.library), "");
    chmod(folder("a").c_str(), 0755);
}

TEST_F(RegistryTest, WhatBelongsToAnotherUserIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    const Manifest m = install("says_one", folder("a/b") / "answer.so");
    constexpr uid_t kStranger = 12345;
    for (const fs::path& path : {folder("a/b"), folder("a"), m.library, manifest_path(m.library)}) {
        ASSERT_EQ(chown(path.c_str(), kStranger, 0), 0);
        EXPECT_THAT(making(must(Registry::open({folder("a/b")})), "answer"),
                    HasSubstr(path.string() + " belongs to user 12345, expected root or user 0"));
        ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    }
}

// fcfs is shipped, too; a plugin of one's own that cannot be used may be meant to be another.
TEST_F(RegistryTest, NothingTakesThePlaceOfAnOwnPluginThatCannotBeUsed) {
    const fs::path library = folder("p") / "scheduler-fcfs.so", json = manifest_path(library);
    write(library, "no library");
    const auto expect_refused = [&](const std::string& reason) {
        const std::string text = library.parent_path().string() + "/" + reason + " (run `patchbay plugin test " +
                                 library.string() +
                                 "`); plugins in later folders are not used instead: fix or remove it";
        const Registry by_flag = must(Registry::open({folder("p")}));
        EXPECT_EQ(error_of(by_flag.find("scheduler", "fcfs")), text);
        EXPECT_EQ(error_of(by_flag.scheduler("fcfs", {}, {})), text);
        EXPECT_NE(by_flag.first("scheduler", "fcfs"), nullptr);
        const Variable path("PATCHBAY_PLUGIN_PATH", folder("p"));
        EXPECT_EQ(error_of(must(Registry::open({})).find("scheduler", "fcfs")), text);
        EXPECT_TRUE(must(Registry::open({folder("p")}, Unusable::kIsLeftOut)).find("scheduler", "fcfs"));
    };
    expect_refused("scheduler-fcfs.so: not probed yet");
    write(json, "{");
    expect_refused("scheduler-fcfs.plugin.json:1:1: invalid JSON: syntax error while parsing object key - unexpected "
                   "end of input; expected string literal");
    fs::remove(json);
    install("says_one", folder("first") / "answer.so");
    const Registry earlier = must(Registry::open({folder("first"), folder("p")}));
    EXPECT_EQ(making(earlier, "answer"), "made") << "found before the one that cannot be used";
    EXPECT_THAT(error_of(earlier.find("scheduler", "fcfs")), HasSubstr("not probed yet"));
    EXPECT_TRUE(must(Registry::open({kBuildTree})).find("scheduler", "fcfs"));
}

// As one that was built and probed for an older host; a library of the later folder has its name, too.
TEST_F(RegistryTest, AnOwnPluginOfAnotherContractIsNotReplaced) {
    Manifest good = install("says_one", folder("later") / "again.so");
    good.components[0].name = "again";
    ASSERT_TRUE(write_manifest(good, manifest_path(good.library)));
    Manifest m = good;
    m.library = folder("p") / "mine.so";
    write(m.library, bytes_of(built("other_contract")));
    m.sha256 = must(file_sha256(m.library));
    m.components[0].revision = 99;
    ASSERT_TRUE(write_manifest(m, manifest_path(m.library)));
    const Registry r = must(Registry::open({folder("p"), folder("later")}));
    EXPECT_EQ(must(r.find("proposer", "again")), &r.manifests()[0].components[0]);
    EXPECT_THAT(Registry::fault_of(r.manifests()[0]), HasSubstr("build it again"));
    EXPECT_THAT(making(r, "again"), AllOf(HasSubstr(m.library.string()), HasSubstr("build it again")));
}

TEST_F(RegistryTest, ALibraryWithoutAManifestIsLeftOutWithTheCommandThatMakesOne) {
    const fs::path library = folder("p") / "answer.so";
    write(library, bytes_of(built("says_one")));
    write(folder("p") / "notes.txt", "no library");
    const Registry r = must(Registry::open({folder("p")}));
    EXPECT_THAT(remarks(r),
                ElementsAre("p/answer.so: not probed yet (run `patchbay plugin test " + library.string() + "`)"));
    EXPECT_FALSE(r.find("proposer", "answer"));
}

TEST_F(RegistryTest, AManifestThatCannotBeReadIsARemarkAndHidesNothingElse) {
    install("says_one", folder("p") / "answer.so");
    write(folder("p") / "broken.so", "");
    write(folder("p") / "broken.plugin.json", "{\"library\": ");
    write(folder("p") / "loop.so", "");
    fs::create_symlink("loop.plugin.json", folder("p") / "loop.plugin.json");
    write(folder("p") / "stranger.so", "");
    fs::copy_file(folder("p") / "answer.plugin.json", folder("p") / "stranger.plugin.json");
    const Registry r = must(Registry::open({folder("p")}));
    EXPECT_THAT(remarks(r), ElementsAre(StartsWith("p/broken.plugin.json:1:12: invalid JSON: "),
                                        StartsWith("p/stranger.plugin.json: speaks of answer.so, not of the library")));
    EXPECT_THAT(r.remarks(),
                ::testing::Contains(StartsWith("cannot read " + (folder("p") / "loop.plugin.json").string() +
                                               ": Too many levels of symbolic links")));
    EXPECT_EQ(making(r, "answer"), "made");
}

TEST_F(RegistryTest, AStaleManifestIsAFaultInTheListAndARefusalWhenUsed) {
    const Manifest m = install("says_one", folder("p") / "answer.so");
    const Registry r = must(Registry::open({folder("p")}));
    EXPECT_EQ(Registry::fault_of(m), "");
    write(m.library, bytes_of(built("says_two")));
    EXPECT_EQ(Registry::fault_of(m), m.library.string() + ": changed since it was probed (run `patchbay plugin test " +
                                         m.library.string() + "`)");
    EXPECT_THAT(making(r, "answer"), HasSubstr("it was changed after its probe: run `patchbay plugin test "));
    fs::remove(m.library);
    EXPECT_EQ(Registry::fault_of(m), m.library.string() + ": there is no such file");
    EXPECT_THAT(making(r, "answer"), HasSubstr("there is no such file"));
}

TEST_F(RegistryTest, AManifestThatLiesAboutTheDigestIsRefused) {
    const Registry r = with([](Manifest& m) { m.sha256 = std::string(64, 'b'); });
    EXPECT_THAT(making(r, "answer"), HasSubstr("its manifest says bbbbbbbbbbbb…"));
}

TEST_F(RegistryTest, AManifestThatPromisesTooMuchIsRefused) {
    const Registry r = with([](Manifest& m) { m.components[0].name = "oracle"; });
    EXPECT_THAT(making(r, "oracle"), HasSubstr("its manifest promises a proposer 'oracle' that it does not hold"));
    EXPECT_EQ(r.proposer("oracle", {}, {}).code(), StatusCode::kInvalid);
}

TEST_F(RegistryTest, APluginOfAnotherContractIsAFaultInTheList) {
    const Registry r = with([](Manifest& m) { m.components[0].revision = 99; });
    EXPECT_THAT(Registry::fault_of(r.manifests().front()),
                HasSubstr("revision 99 of patchbay.proposer/1, this host has"));
}

TEST_F(RegistryTest, ANameThatIsNotThereSaysWhatIs) {
    const Registry r = must(Registry::open({kBuildTree}));
    EXPECT_EQ(error_of(r.find("scheduler", "fcsf")), "no scheduler 'fcsf' (did you mean 'fcfs'?)");
    EXPECT_THAT(error_of(r.find("sampler", "dice")), StartsWith("no sampler 'dice' (there are: greedy, standard"));
    EXPECT_THAT(error_of(r.find("oracle", "delphi")),
                HasSubstr("no oracle is installed in the folders that `patchbay plugin list` names"));
    EXPECT_FALSE(r.find("sampler", "fcfs")) << "a name is of one kind";
}

TEST_F(RegistryTest, AModelIsFoundByTheArchitectureThatItServes) {
    const Registry r = must(Registry::open({kBuildTree}));
    EXPECT_EQ(must(r.model_for("MistralForCausalLM")), "llama");
    EXPECT_THAT(error_of(r.model_for("BloomForCausalLM")),
                StartsWith("no model plugin serves architecture 'BloomForCausalLM' (there are: "));
    EXPECT_THAT(error_of(r.model_for("")), HasSubstr("config.json has no 'architectures'"));
}

TEST_F(RegistryTest, ASlotHoldsOneComponentWhoseIdentityIsItsBytes) {
    const Manifest m = install("throwers", folder("p") / "t.so");
    const Registry r = must(Registry::open({folder("p")}));
    const Scheduler scheduler = must(r.scheduler("thrower", {{"at", "never"}}, {}));
    const Sampler sampler = must(r.sampler("thrower", {{"at", "never"}}, {}));
    EXPECT_STREQ(scheduler.component->type().kind, PB_SCHEDULER);
    EXPECT_EQ(static_cast<const void*>(scheduler.table), scheduler.component->type().vtable);
    EXPECT_EQ(static_cast<const void*>(sampler.table), sampler.component->type().vtable);
    const Identity id = Registry::identity(*sampler.component);
    EXPECT_EQ(id.kind, "sampler");
    EXPECT_EQ(id.name, "thrower");
    EXPECT_EQ(id.version, "1.0.0");
    EXPECT_EQ(id.sha256, must(file_sha256(m.library)));
    EXPECT_EQ(id.path, m.library.string());
    EXPECT_FALSE(Scheduler{});
    EXPECT_TRUE(scheduler);
}

// Only what the machine lacks leaves a device sound that stands before it.
TEST_F(RegistryTest, WhyAnInnerDeviceCannotBeHadIsPassedOnWithItsCode) {
    const Registry r = must(Registry::open({}));
    const auto before = [&](const char* inner) { return r.device("byte_count", {{"inner", inner}}, {}); };
    EXPECT_EQ(before("none_such").code(), StatusCode::kUnavailable);
    EXPECT_THAT(error_of(before("byte_count")), HasSubstr("it is an inner device itself"));
    EXPECT_EQ(before("byte_count").code(), StatusCode::kUnsupported);
}

TEST_F(RegistryTest, EveryComponentKnowsThePluginThatHoldsIt) {
    install("says_one", folder("p") / "a.so");
    const Manifest m = install("throwers", folder("p") / "b.so");
    const Registry r = must(Registry::open({folder("p")}));
    for (const ComponentManifest& c : r.manifests()[1].components) EXPECT_EQ(r.plugin_of(c)->library, m.library);
    EXPECT_EQ(r.plugin_of(ComponentManifest{}), nullptr);
}

}  // namespace
}  // namespace patchbay::host::registry_test
