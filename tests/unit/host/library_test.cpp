// What is refused before its code runs, and what a loaded library keeps being while its file changes.
#include <sys/stat.h>
#include <unistd.h>

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::library_test {
namespace {

using ::testing::HasSubstr;

class LibraryTest : public HostTest {
  protected:
    static std::unique_ptr<Component> proposer(const fs::path& path) {
        const auto library = must(Library::open(path, ""));
        const pb_component* type = library->find("proposer", "answer");
        if (!type) throw std::runtime_error("no answer in " + path.string());
        return must(Component::create(library, *type, {}, {}));
    }
    // The check that refuses a file, with its reason.
    static LoadFault refusal(const fs::path& path, const std::string& sha256 = "") {
        LoadFault fault;
        const auto opened = Library::open(path, sha256, &fault);
        EXPECT_FALSE(opened);
        EXPECT_EQ(error_of(opened), path.string() + ": " + fault.reason);
        return fault;
    }
};

TEST_F(LibraryTest, WhatIsNoFileIsRefusedWithoutWaitingForIt) {
    EXPECT_EQ(refusal(folder_ / "missing.so").reason, "there is no such file");
    EXPECT_EQ(refusal(folder_.path()).reason, "it is not a regular file");
    ASSERT_EQ(mkfifo((folder_ / "pipe.so").c_str(), 0600), 0);
    EXPECT_EQ(refusal(folder_ / "pipe.so").reason, "it is not a regular file");
    fs::create_symlink("b.so", folder_ / "a.so");
    fs::create_symlink("a.so", folder_ / "b.so");
    const LoadFault loop = refusal(folder_ / "a.so");
    EXPECT_EQ(loop.check, "file.readable");
    EXPECT_EQ(loop.reason, "cannot be read: Too many levels of symbolic links");
}

TEST_F(LibraryTest, AFileThatMayNotBeReadIsRefusedAndSaysSo) {
    const fs::path file = folder_ / "secret.so";
    write(file, bytes_of(built("says_one")));
    chmod(folder_.path().c_str(), 0755);
    chmod(file.c_str(), 0);
    const uid_t self = geteuid();
    ASSERT_EQ(seteuid(self == 0 ? 65534 : self), 0);  // root may read everything
    const LoadFault fault = refusal(file);
    ASSERT_EQ(seteuid(self), 0);
    EXPECT_EQ(fault.check, "file.readable");
    EXPECT_EQ(fault.reason, "cannot be read: Permission denied");
}

TEST_F(LibraryTest, WhatTheLoaderRefusesIsNamedAsTheUserKnowsIt) {
    const std::string good = bytes_of(built("says_one"));
    std::string other_machine = good;
    other_machine[18] = 8;  // e_machine: MIPS
    const std::string texts[] = {"", "#!/bin/sh\n", good.substr(0, 64), other_machine};
    for (const std::string& bytes : texts) {
        write(folder_ / "p.so", bytes);
        const LoadFault fault = refusal(folder_ / "p.so");
        EXPECT_EQ(fault.check, "file.loads");
        EXPECT_THAT(fault.reason, ::testing::Not(HasSubstr(cache_.string())))
            << "the private copy is no file of the user's";
    }
}

TEST_F(LibraryTest, BytesThatTheManifestDoesNotVouchForNeverRun) {
    const LoadFault fault = refusal(built("aborts"), std::string(64, '0'));  // loading it would end this process
    EXPECT_EQ(fault.check, "file.sha256");
    EXPECT_THAT(fault.reason, HasSubstr("its manifest says 000000000000…"));
    EXPECT_THAT(fault.reason, HasSubstr("patchbay plugin test " + built("aborts").string()));
}

TEST_F(LibraryTest, AFileReplacedInPlaceChangesNothingThatIsLoaded) {
    const fs::path file = folder_ / "p.so";
    write(file, bytes_of(built("says_one")));
    const auto before = proposer(file);
    write(file, bytes_of(built("says_two")));
    const auto after = proposer(file);
    write(file, "");
    EXPECT_EQ(answer_of(*before), 1);
    EXPECT_EQ(answer_of(*after), 2);
    EXPECT_NE(before->library()->sha256(), after->library()->sha256());
    EXPECT_EQ(before->library()->path(), file);
}

TEST_F(LibraryTest, TwoFilesOfOneNameAreTwoLibraries) {
    fs::create_directory(folder_ / "a");
    fs::create_directory(folder_ / "b");
    write(folder_ / "a/p.so", bytes_of(built("says_one")));
    write(folder_ / "b/p.so", bytes_of(built("says_two")));
    const auto one = proposer(folder_ / "a/p.so"), two = proposer(folder_ / "b/p.so");
    EXPECT_EQ(answer_of(*one), 1);
    EXPECT_EQ(answer_of(*two), 2);
}

TEST_F(LibraryTest, TheCodeStaysAsLongAsAnObjectOfIt) {
    const fs::path file = folder_ / "p.so";
    write(file, bytes_of(built("says_one")));
    const auto component = proposer(file);  // the library's own pointer is gone
    fs::remove_all(cache_);
    fs::remove(file);
    EXPECT_EQ(answer_of(*component), 1);
}

TEST_F(LibraryTest, ComponentsAreFoundByKindAndName) {
    const auto library = must(Library::open(built("throwers"), ""));
    const pb_component* scheduler = library->find("scheduler", "thrower");
    const pb_component* sampler = library->find("sampler", "thrower");
    ASSERT_TRUE(scheduler && sampler);
    EXPECT_STREQ(scheduler->kind, PB_SCHEDULER);
    EXPECT_STREQ(sampler->kind, PB_SAMPLER);
    EXPECT_EQ(library->find("model", "thrower"), nullptr);
    EXPECT_EQ(library->find("scheduler", "throw"), nullptr);
}

// A fault for each field of the contract, as a manifest of another host would have it.
TEST_F(LibraryTest, AManifestOfAnotherContractSaysWhatDiffers) {
    const Manifest good = manifest_of(built("says_one"));
    EXPECT_EQ(contract_fault(good), "");
    Manifest m = good;
    m.abi_major = 2;
    EXPECT_EQ(contract_fault(m), "built for ABI 2.0, this host speaks 1.0: build it with the headers of this Patchbay");
    m = good;
    m.abi_minor = 1;
    EXPECT_EQ(contract_fault(m), "built for ABI 1.1, this host speaks 1.0: use a newer Patchbay, or build it with "
                                 "the headers of this one");
    m = good;
    m.components[0].revision = 99;
    EXPECT_EQ(contract_fault(m),
              "component 'answer' was built for revision 99 of patchbay.proposer/1, this host has revision 1: build it "
              "again");
    m = good;
    m.components[0].extensions = {{"patchbay.of.another.host/1", 7}};
    EXPECT_EQ(contract_fault(m), "") << "what it does not know, a host does without";
    m.components[0].extensions = {{PB_CONFIGURE, 99}};
    EXPECT_THAT(contract_fault(m), HasSubstr("revision 99 of patchbay.component.configure/1"));
    m = good;
    m.components[0].kind_id = "patchbay.proposer/2";
    EXPECT_EQ(contract_fault(m), "component 'answer' is of kind 'patchbay.proposer/2', which this host does not know");
}

TEST(KindWord, IsWhatStandsBetweenPatchbayAndTheSlash) {
    EXPECT_EQ(kind_word("patchbay.scheduler/1"), "scheduler");
    EXPECT_EQ(kind_word("patchbay.oracle"), "oracle");
    EXPECT_EQ(kind_word("other.scheduler/1"), "other.scheduler/1");
}

}  // namespace
}  // namespace patchbay::host::library_test
