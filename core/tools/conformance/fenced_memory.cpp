#include "conformance/fenced_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace patchbay::conformance {

Result<FencedMemory> FencedMemory::create(size_t bytes, size_t fence) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t before = (fence + page - 1) / page * page, all = before + bytes;
    void* const mapping = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return fail(StatusCode::kExhausted, "no memory for " + std::to_string(all) + " bytes");
    FencedMemory out;
    out.mapping_ = {mapping, [all](void* p) { munmap(p, all); }};
    out.data_ = static_cast<std::byte*>(mapping) + before;
    out.size_ = bytes;
    if (mprotect(out.data_, bytes, PROT_READ | PROT_WRITE) != 0)
        return fail(StatusCode::kExhausted, "no memory for " + std::to_string(bytes) + " bytes");
    std::memset(out.data_, 0xff, bytes);
    return out;
}

}  // namespace patchbay::conformance
