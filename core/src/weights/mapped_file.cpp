#include "weights/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/refusals.hpp"

namespace patchbay::weights {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const auto failure = [&](int error) {
        return fail(code_of_open(error), "cannot open " + path.string() + ": " + std::strerror(error));
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
    if (fd < 0) return failure(errno);
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd);
        return invalid(path.string() + " is not a regular file");
    }
    const auto size = static_cast<size_t>(info.st_size);
    if (size == 0) {
        ::close(fd);
        return MappedFile(std::span<const std::byte>{});
    }
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (memory == MAP_FAILED) return failure(error);
    ::madvise(memory, size, MADV_SEQUENTIAL); // tensors are read once, mostly in file order
    return MappedFile({static_cast<const std::byte*>(memory), size});
}

void MappedFile::forget(std::span<const std::byte> some) {
    if (some.empty()) return;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<uintptr_t>(some.data()) / page * page,
               end = (reinterpret_cast<uintptr_t>(some.data()) + some.size() + page - 1) / page * page;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); // never written to
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace patchbay::weights
