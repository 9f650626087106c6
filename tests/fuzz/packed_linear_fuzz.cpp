// Any quantization_config, shapes and bytes as a linear of an AWQ, GPTQ or MXFP4 checkpoint: an error, or codes that
// stay in their range, in an order that is a permutation.
//
// Input: a byte each for the method, the bits, the group size's kind and value, rows, columns, where the piece is cut,
// and which tensor has a wrong shape; then what the tensors hold, over and over.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "weights/packed_linear.hpp"

namespace {

using namespace patchbay;
using namespace patchbay::weights;

class Stored final : public Checkpoint {
  public:
    void add(const std::string& name, Encoding encoding, std::vector<int64_t> shape, std::span<const uint8_t> from) {
        int64_t count = 1;
        for (const int64_t n : shape) count *= n;
        auto& bytes = bytes_[name];
        bytes.resize(static_cast<size_t>(count * facts_of(encoding).block_bytes)); // no more: sanitizers see its end
        for (size_t i = 0; i < bytes.size() && !from.empty(); ++i) bytes[i] = std::byte{from[i % from.size()]};
        views_[name] = {encoding, std::move(shape), bytes.data(), bytes.size()};
    }
    void set_words(const std::string& name, const std::vector<int32_t>& words) {
        std::copy_n(reinterpret_cast<const std::byte*>(words.data()), words.size() * 4, bytes_[name].data());
    }
    Result<TensorView> tensor(const std::string& name) const override {
        const auto at = views_.find(name);
        if (at == views_.end()) return fail("no tensor '" + name + "'");
        return at->second;
    }
    bool has(const std::string& name) const override { return views_.contains(name); }
    std::vector<std::string> names() const override { return {}; }
    void forget(const std::string&) const override {}

  private:
    std::map<std::string, std::vector<std::byte>> bytes_;
    std::map<std::string, TensorView> views_;
};

void check(const CodeSource& source, const Piece& piece) {
    CodeRows codes(source.form(), piece.rows, piece.cols);
    source.unpack(0, piece.rows, codes);
    const int least = source.form().dtype == PB_I4 ? -8 : -128;
    for (const int code : codes.codes)
        if (code < least || code > -least - 1) __builtin_trap();
    std::vector<int32_t> order(source.order().begin(), source.order().end());
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i)
        if (order[i] != static_cast<int32_t>(i) || order.size() != static_cast<size_t>(piece.cols)) __builtin_trap();
    std::vector<std::byte> real(static_cast<size_t>(piece.count()) * 4);
    write_real(source, piece.rows, piece.cols, PB_F32, real.data(), nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::array<uint8_t, 8> head{};
    std::copy_n(data, std::min(size, head.size()), head.begin());
    const std::span<const uint8_t> rest(data + std::min(size, head.size()), size - std::min(size, head.size()));
    const bool awq = head[0] % 2 == 0, by_group = head[0] / 2 % 2 == 1, mxfp4 = head[0] >= 192;
    const char* const kGroups[] = {"-1", "16", "32", "128", "0", "9223372036854775807"};
    const auto format =
        packed_format({{"quantization_config.quant_method", mxfp4 ? "mxfp4" : awq ? "awq" : "gptq"},
                       {"quantization_config.bits", std::to_string(head[1] % 12)},
                       {"quantization_config.group_size",
                        head[2] < 128 ? kGroups[head[2] % 6] : std::to_string(head[3])},
                       {"quantization_config.desc_act", by_group ? "true" : "false"},
                       {"quantization_config.checkpoint_format", head[0] / 4 % 2 ? "gptq_v2" : "gptq"}});
    if (!format) return format.error().empty() ? __builtin_trap(), 0 : 0;
    const int64_t rows = 1 + head[4] % 64, cols = 1 + head[5], per = 32 / (*format)->bits;
    const int64_t group = (*format)->group_size < 0 ? cols : std::min((*format)->group_size, cols);
    const int64_t groups = (cols + group - 1) / group, wrong = head[7] % 16;
    const auto one_less = [&](int64_t number, int64_t n) { return wrong == number && n > 1 ? n - 1 : n; };
    Stored from;
    from.add("m.qweight", wrong == 6 ? Encoding::kF32 : Encoding::kI32,
             awq ? std::vector{one_less(1, cols), rows / per} : std::vector{one_less(1, cols / per), rows}, rest);
    from.add("m.qzeros", Encoding::kI32, {one_less(2, groups), rows / per}, rest);
    from.add("m.scales", wrong == 7 ? Encoding::kI64 : Encoding::kF16, {groups, one_less(3, rows)}, rest);
    from.add("m.g_idx", Encoding::kI32, {one_less(4, cols)}, rest);
    from.add("m.weight_blocks", Encoding::kU8, {one_less(1, rows), cols / 32, one_less(2, 16)}, rest);
    from.add("m.weight_scales", Encoding::kU8, {rows, one_less(3, cols / 32)}, rest);
    if (wrong > 7) { // one that deals whole groups
        std::vector<int32_t> by;
        for (int64_t c = 0; c < cols; ++c) by.push_back(static_cast<int32_t>(c / group));
        std::rotate(by.begin(), by.begin() + head[6] % cols, by.end());
        from.set_words("m.g_idx", by);
    }
    const int64_t begin = head[6] % cols, first = head[6] / 2 % rows;
    for (const Piece& piece : {Piece{"m.weight", {rows, cols}, 0, rows, 0, cols},
                               Piece{"m.weight", {rows, cols}, first, rows - first, begin, cols - begin}}) {
        const auto codes = packed_codes(**format, from, "m", piece);
        if (!codes && codes.error().empty()) __builtin_trap();
        if (codes) check(**codes, piece);
    }
    return 0;
}
