// Addresses: what is taken for one, token files, socket files of the living and the dead.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "serve/admin_address.hpp"
#include "serve/http_server.hpp"
#include "serve/socket_file.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing::admin_address_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string error_of(const std::string& text, const std::string& token_file) {
    const auto address = admin_address(text, token_file);
    return address ? "" : address.error();
}

TEST(AdminAddresses, ArePathsOrHostAndPortWithAToken) {
    const TemporaryFolder folder;
    const std::string file = folder.path() / "token";
    std::ofstream(file) << "0123456789abcdef\n";
    fs::permissions(file, fs::perms::owner_read);
    const auto tcp = admin_address("127.0.0.1:9000", file);
    ASSERT_TRUE(tcp) << tcp.error();
    EXPECT_EQ(tcp->token, "0123456789abcdef");
    EXPECT_EQ(tcp->text(), "http://127.0.0.1:9000");
    const auto v6 = admin_address("[::1]:9000", file);
    ASSERT_TRUE(v6) << v6.error();
    EXPECT_EQ(v6->host, "::1");
    EXPECT_EQ(v6->text(), "http://[::1]:9000");
    const auto path = admin_address("./admin.sock", "");
    ASSERT_TRUE(path) << path.error();
    EXPECT_EQ(path->text(), "./admin.sock");
    EXPECT_THAT(error_of("127.0.0.1:9000", ""), HasSubstr("needs --admin-token-file"));
    EXPECT_THAT(error_of("./admin.sock", file), HasSubstr("guarded by its permissions"));
    for (const char* wrong : {"admin.sock", "host:", ":9000", "host:70000", "host:9x", "host:-1", ""})
        EXPECT_THAT(error_of(wrong, file), HasSubstr("expected a path with a '/'")) << wrong;
}

TEST(AdminAddresses, TakeNoTokenThatOthersCanReadOrGuess) {
    const TemporaryFolder folder;
    const std::string file = folder.path() / "token", address = "127.0.0.1:9000";
    EXPECT_THAT(error_of(address, file), HasSubstr("No such file"));
    EXPECT_EQ(admin_address(address, file).code(), StatusCode::kNotFound);
    std::ofstream(file) << "0123456789abcdef";
    for (const mode_t mode : {0644u, 0640u, 0602u}) {
        chmod(file.c_str(), mode);
        EXPECT_THAT(error_of(address, file), HasSubstr("chmod 600"));
    }
    chmod(file.c_str(), 0600);
    EXPECT_EQ(error_of(address, file), "");
    for (const char* weak : {"", "\n", "0123456789abcde\n", "0123456789 abcdef", "0123456789abcdef\n0123456789abcdef",
                             "0123456789abcd\xc3\xa9g"}) {
        std::ofstream(file, std::ios::trunc) << weak;
        EXPECT_THAT(error_of(address, file), HasSubstr("at least 16 printable characters")) << weak;
    }
}

int bound_socket(const fs::path& path) { // that nothing listens on when it is closed
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    return fd;
}

Result<std::unique_ptr<HttpServer>> serve(const HttpOptions& options) {
    PB_TRY(std::unique_ptr<HttpServer> out,
           HttpServer::listen(options, [](const std::shared_ptr<Exchange>& e) { e->respond({}); }));
    out->run();
    return out;
}

Result<std::unique_ptr<HttpServer>> serve_on(const fs::path& socket) {
    HttpOptions options;
    options.socket = socket;
    return serve(options);
}

TEST(SocketFiles, OfTheDeadAreReplacedAndOfTheLivingAreNot) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a.sock";
    close(bound_socket(path)); // as a process that was killed leaves it
    EXPECT_FALSE(is_live_socket(path));
    {
        const auto first = serve_on(path);
        ASSERT_TRUE(first) << first.error();
        EXPECT_TRUE(is_live_socket(path));
        const auto second = serve_on(path);
        ASSERT_FALSE(second);
        EXPECT_THAT(second.error(), HasSubstr("another process listens on"));
        EXPECT_EQ(second.code(), StatusCode::kUnavailable) << "it may end";
        EXPECT_TRUE(is_live_socket(path)); // the first one's, still
    }
    EXPECT_FALSE(fs::exists(fs::symlink_status(path)));
}

TEST(SocketFiles, AreRefusedWhereAnotherKeepsTheFolderLocked) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "a.sock";
    const auto nothing = [] { return Result<>(); };
    const auto bind = [&]() -> Result<> {
        close(bound_socket(path));
        return {};
    };
    const int other = open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(flock(other, LOCK_EX), 0);
    const auto refused = SocketFile::make(path, bind, nothing, VirtualClock());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "cannot listen on " + path.string() +
                                   ": for 5 s another process has kept its folder locked (flock)");
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_FALSE(fs::exists(path));
    close(other);
    EXPECT_TRUE(SocketFile::make(path, bind, nothing, VirtualClock()));
}

TEST(SocketFiles, TakeNothingElsesPlace) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "file", link = folder.path() / "link";
    std::ofstream(file) << "precious";
    fs::create_symlink(file, link);
    for (const fs::path& path : {file, link, folder.path()}) {
        const auto server = serve_on(path);
        ASSERT_FALSE(server) << path;
        EXPECT_THAT(server.error(), HasSubstr("is not a socket"));
    }
    EXPECT_EQ(fs::file_size(file), 8u);
    EXPECT_THAT(serve_on(folder.path() / "none" / "a.sock").error(), HasSubstr("No such file"));
    EXPECT_THAT(serve_on(folder.path() / std::string(200, 'x')).error(), HasSubstr("at most 107 bytes"));
    const auto in_its_place = serve_on(folder.path() / "b.sock");
    ASSERT_TRUE(in_its_place);
    fs::remove(folder.path() / "b.sock");
    std::ofstream(folder.path() / "b.sock") << "another's";
    (*in_its_place)->stop();
    EXPECT_TRUE(fs::exists(folder.path() / "b.sock")); // it is not the one that was made
}

TEST(TcpAddresses, ThatAreInUseAreUnavailableAndWrongOnesInvalid) {
    const auto serve_at = [](const std::string& host, uint16_t port) {
        HttpOptions options;
        options.host = host;
        options.port = port;
        return serve(options);
    };
    const auto first = serve_at("127.0.0.1", 0);
    ASSERT_TRUE(first) << first.error();
    EXPECT_EQ(serve_at("127.0.0.1", (*first)->port()).code(), StatusCode::kUnavailable);
    EXPECT_EQ(serve_at("192.0.2.1", 0).code(), StatusCode::kInvalid) << "no address of this machine";
}

class DefaultAddress : public ::testing::Test {
  protected:
    DefaultAddress() {
        const char* const had = std::getenv("XDG_RUNTIME_DIR");
        if (had) before_ = had;
        setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    }
    ~DefaultAddress() override {
        if (before_) setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
        else unsetenv("XDG_RUNTIME_DIR");
    }
    const TemporaryFolder folder_;
    std::optional<std::string> before_;
};

TEST_F(DefaultAddress, LiesInAFolderOfTheUsersOwn) {
    EXPECT_EQ(admin_folder(), folder_.path() / "patchbay");
    EXPECT_TRUE(live_admin_sockets()->empty()); // there is no folder yet
    const auto address = default_admin_address();
    ASSERT_TRUE(address) << address.error();
    EXPECT_EQ(address->socket, admin_folder() / (std::to_string(getpid()) + ".sock"));
    struct stat info {};
    ASSERT_EQ(stat(admin_folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    chmod(admin_folder().c_str(), 0750);
    EXPECT_THAT(default_admin_address().error(), HasSubstr("chmod 700"));
    EXPECT_THAT(live_admin_sockets().error(), HasSubstr("chmod 700"));
    fs::remove(admin_folder());
    fs::create_directory_symlink("/tmp", admin_folder());
    EXPECT_THAT(default_admin_address().error(), HasSubstr("is not a folder"));
    unsetenv("XDG_RUNTIME_DIR");
    EXPECT_EQ(admin_folder(), "/tmp/patchbay-" + std::to_string(geteuid()));
}

TEST_F(DefaultAddress, FindsTheLivingAndSweepsTheDead) {
    const fs::path own = default_admin_address()->socket, dead = admin_folder() / "1.sock";
    close(bound_socket(dead));
    std::ofstream(admin_folder() / "other.sock") << "no socket";
    const auto server = serve_on(own);
    ASSERT_TRUE(server) << server.error();
    EXPECT_THAT(*live_admin_sockets(), ::testing::ElementsAre(own));
    EXPECT_TRUE(fs::exists(fs::symlink_status(dead))); // who only looks takes nothing away
    ASSERT_TRUE(default_admin_address());
    EXPECT_FALSE(fs::exists(fs::symlink_status(dead)));
    EXPECT_TRUE(is_live_socket(own));
}

}  // namespace
}  // namespace patchbay::serve::testing::admin_address_test
