#include "parallel/hello.hpp"

#include "base/refusals.hpp"
#include "parallel/bytes.hpp"

namespace patchbay::parallel {

std::string text_of(const RankInfo& r) {
    return "rank " + std::to_string(r.rank) + " (" + r.host + ", pid " + std::to_string(r.pid) + ")";
}

std::string bytes_of(const Hello& h) {
    ByteWriter out;
    out.put(std::string_view(h.job));
    out.put(h.rank);
    out.put(h.size);
    out.put(h.pid);
    out.put(std::string_view(h.host));
    return std::string(out.bytes());
}

Result<Hello> read_hello(std::string_view bytes) {
    constexpr size_t kMaxText = 256;
    ByteReader in(bytes);
    Hello out{in.text(), in.get<uint32_t>(), in.get<uint32_t>(), in.get<uint32_t>(), in.text()};
    PB_CHECK(in.done("a rank's hello"));
    if (out.job.size() > kMaxText || out.host.size() > kMaxText) return invalid("a rank's hello is too long");
    return out;
}

}  // namespace patchbay::parallel
