#include "text/utf8.hpp"

#include "base/utf8.hpp"

namespace patchbay::text {

void drain_utf8(std::string& bytes, std::string& out, Rest rest) {
    std::string_view left = bytes;
    while (!left.empty()) {
        const size_t good = valid_prefix(left);
        out.append(left.substr(0, good));
        left.remove_prefix(good);
        if (left.empty()) break;
        const Utf8Step step = utf8_step(left);
        if (step.what == Utf8::kUnfinished && rest == Rest::kKeep) break;
        out += "\xEF\xBF\xBD"; // U+FFFD
        left.remove_prefix(step.bytes);
    }
    bytes.erase(0, bytes.size() - left.size());
}

}  // namespace patchbay::text
