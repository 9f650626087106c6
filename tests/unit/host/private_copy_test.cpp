// Where the bytes that run are kept, and that they are those that were hashed.
#include "host/private_copy.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "paths.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::host::private_copy_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PrivateCopyTest : public HostTest {
  protected:
    fs::path file(const std::string& name, const std::string& bytes) const {
        write(folder_ / name, bytes);
        return folder_ / name;
    }
    uint32_t copies() const {
        return static_cast<uint32_t>(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()));
    }
};

TEST_F(PrivateCopyTest, IsOfAFileThatIsThere) {
    EXPECT_EQ(private_copy(folder_ / "none.so").code(), StatusCode::kNotFound);
    EXPECT_EQ(private_copy(folder_.path()).code(), StatusCode::kInvalid) << "a folder";
    EXPECT_EQ(Library::open(folder_ / "none.so", "").code(), StatusCode::kNotFound);
    EXPECT_EQ(Library::open(file("text.so", "no library"), "").code(), StatusCode::kInvalid);
}

TEST_F(PrivateCopyTest, IsNamedByItsContent) {
    const PrivateCopy copy = must(private_copy(file("abc.so", "abc")));
    EXPECT_EQ(copy.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-4
    EXPECT_EQ(copy.path, cache_ / "abc-ba7816bf8f01cfea414140de5dae2223.so");
    EXPECT_EQ(bytes_of(copy.path), "abc");
    EXPECT_EQ(must(file_sha256(folder_ / "abc.so")), copy.sha256);
}

TEST_F(PrivateCopyTest, EqualFilesShareOneAndOthersDoNot) {
    const auto first = must(private_copy(file("p.so", "one"))).path;
    fs::create_directory(folder_ / "elsewhere");
    EXPECT_EQ(must(private_copy(file("elsewhere/p.so", "one"))).path, first);
    EXPECT_EQ(copies(), 1u);
    EXPECT_NE(must(private_copy(file("p.so", "two"))).path, first);
    EXPECT_EQ(copies(), 2u);
    EXPECT_EQ(bytes_of(first), "one");
}

TEST_F(PrivateCopyTest, ThatWasTamperedWithIsMadeAnew) {
    const fs::path source = file("p.so", "what was hashed");
    for (const char* other : {"what was forged", "", "something longer than what was hashed"}) {
        const fs::path copy = must(private_copy(source)).path;
        write(copy, other);
        EXPECT_EQ(bytes_of(must(private_copy(source)).path), "what was hashed");
    }
}

TEST_F(PrivateCopyTest, ThatNoProcessUsesAnyMoreIsRemoved) {
    const auto days_ago = [](int n) { return fs::file_time_type::clock::now() - std::chrono::hours(24 * n); };
    const fs::path source = file("used.so", "used");
    const fs::path used = must(private_copy(source)).path, unused = must(private_copy(file("old.so", "old"))).path;
    const fs::path half = unused.string() + ".Xy12Zw", other = cache_ / "libother-abc.so";
    write(half, "o"), write(other, "not ours");
    for (const fs::path& one : {used, unused, half, other}) fs::last_write_time(one, days_ago(31));
    (void)must(private_copy(source));
    EXPECT_GT(fs::last_write_time(used), days_ago(1));
    EXPECT_TRUE(fs::exists(unused)) << "nothing new was written";
    (void)must(private_copy(file("new.so", "new")));
    EXPECT_TRUE(fs::exists(used));
    EXPECT_FALSE(fs::exists(unused));
    EXPECT_FALSE(fs::exists(half));
    EXPECT_TRUE(fs::exists(other));
}

TEST_F(PrivateCopyTest, TheCacheIsFoundByTheEnvironmentInItsOrder) {
    const fs::path source = file("p.so", "bytes");
    const Variable xdg("XDG_CACHE_HOME", folder_ / "xdg"), home("HOME", folder_ / "home");
    EXPECT_EQ(must(private_copy(source)).path.parent_path(), cache_);
    const Variable none("PATCHBAY_CACHE", "");
    EXPECT_EQ(must(private_copy(source)).path.parent_path(), folder_ / "xdg/patchbay");
    const Variable no_xdg("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(must(private_copy(source)).path.parent_path(), folder_ / "home/.cache/patchbay");
}

TEST_F(PrivateCopyTest, NoOtherUserMayWriteToTheCache) {
    const fs::path source = file("abc.so", "abc");
    (void)must(private_copy(source));
    struct stat info {};
    ASSERT_EQ(stat(cache_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << "made by us";
    chmod(cache_.c_str(), 01777);
    EXPECT_THAT(error_of(private_copy(source)), HasSubstr("can be written to by others (chmod go-w "));
    ASSERT_EQ(stat(cache_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 01777u) << "an existing folder keeps its mode";
}

TEST_F(PrivateCopyTest, AnotherUsersCacheIsRefused) {
    const fs::path source = file("p.so", "bytes");
    fs::path theirs = "/usr";  // root's
    if (geteuid() == 0) {
        theirs = folder_ / "theirs";
        fs::create_directory(theirs);
        ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
    }
    const Variable cache("PATCHBAY_CACHE", theirs);
    EXPECT_THAT(error_of(private_copy(source)), HasSubstr("belongs to another user (set PATCHBAY_CACHE)"));
}

TEST_F(PrivateCopyTest, AMountThatLetsNoCodeRunIsNamed) {
    EXPECT_EQ(fault_of_mount("/copies", ST_NOSUID, "TMPDIR"), "");
    EXPECT_EQ(fault_of_mount("/copies", ST_NOSUID | ST_NOEXEC, "TMPDIR"),
              "the folder /copies of private copies is mounted noexec (set TMPDIR to a folder where it is not)");
    EXPECT_EQ(mount_fault(fs::path(kBuildDir)), "") << "whose programs run";
}

// /dev/shm is such a folder in many containers.
TEST_F(PrivateCopyTest, ALibraryThatNoMountLetsRunIsNotToBlame) {
    struct statvfs info {};
    if (statvfs("/dev/shm", &info) != 0 || !(info.f_flag & ST_NOEXEC)) GTEST_SKIP() << "code may run in /dev/shm";
    std::string folder = "/dev/shm/patchbay-host-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const Variable cache("PATCHBAY_CACHE", folder.c_str());
    LoadFault fault;
    const auto opened = Library::open(built("says_one"), "", &fault);
    fs::remove_all(folder);
    EXPECT_EQ(fault.check, "machine.exec");
    EXPECT_THAT(error_of(opened), HasSubstr(folder + " of private copies is mounted noexec (set PATCHBAY_CACHE "));
}

TEST_F(PrivateCopyTest, ACacheThatCannotBeMadeIsNamed) {
    const fs::path source = file("p.so", "bytes");
    const Variable cache("PATCHBAY_CACHE", source / "cache");
    EXPECT_THAT(error_of(private_copy(source)),
                StartsWith("cannot make the cache folder " + (source / "cache").string()));
}

}  // namespace
}  // namespace patchbay::host::private_copy_test
