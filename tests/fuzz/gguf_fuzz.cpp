// Any bytes as a GGUF file: an error, or tensors that lie inside it and can be decoded, a configuration, and a
// tokenizer that survives hard texts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/utf8.hpp"
#include "weights/code_sources.hpp"
#include "weights/gguf_tokenizer.hpp"

namespace {

using namespace patchbay;
using namespace patchbay::weights;

template <class T>
bool refused(const Result<T>& result) { // with a reason
    if (!result && result.error().empty()) __builtin_trap();
    return !result;
}

void decode_all(const Encoding encoding, const std::byte* data, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::vector<std::byte> out(static_cast<size_t>(std::min<int64_t>(count, 1 << 16)) * 4);
    for (const pb_dtype to : {PB_F32, PB_BF16})
        if (is_real(encoding)) {
            decode(encoding, data, 0, std::min<int64_t>(count, 1 << 16), to, out.data());
            decode(encoding, data, count - 1, 1, to, out.data());
        }
}

// The same numbers as codes, of all and of some of the columns.
void unpack_all(const TensorView& view) {
    if (view.shape.size() != 2) return;
    const int64_t rows = std::min<int64_t>(view.shape[0], 8), cols = view.shape[1];
    if (cols > 1 << 16) return;
    for (const int64_t first : {int64_t{0}, int64_t{32}}) {
        const Piece piece{"w", view.shape, 0, rows, first, cols - first};
        if (piece.cols < 1) continue;
        const auto source = block_codes(piece, view);
        if (!source) continue;
        CodeRows codes(source->form(), rows, piece.cols);
        source->unpack(0, rows, codes);
    }
}

void use(const text::Tokenizer& tokenizer) {
    const auto ids = tokenizer.encode("Hello  world, aaaa\n\n<s> 123 caf\xC3\xA9 \xF0\x9F\xA6\x99 \xFF\xC3 's \r\n");
    for (const auto id : ids)
        if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.vocab_size()) __builtin_trap();
    const std::string text = tokenizer.decode(ids);
    if (patchbay::valid_prefix(text) != text.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Gguf file{"fuzz", {reinterpret_cast<const std::byte*>(data), size}, {}};
    auto header = parse_gguf(file.bytes, file.where);
    if (refused(header)) return 0;
    file.header = *std::move(header);
    if (file.header.bytes > size) __builtin_trap();
    for (const auto& [key, value] : file.header.metadata) {
        if (value.shown().empty()) __builtin_trap();
        static_cast<void>(value.texts());
        static_cast<void>(value.numbers());
    }
    for (const auto& [name, tensor] : file.header.tensors) {
        if (!tensor.encoding) continue;
        if (tensor.begin < file.header.bytes || tensor.begin > tensor.end || tensor.end > size) __builtin_trap();
        decode_all(*tensor.encoding, file.bytes.data() + tensor.begin, tensor.shape);
    }
    refused(gguf_config(file));
    const auto tensors = gguf_tensors(file);
    if (!refused(tensors))
        for (const auto& [name, view] : tensors->read) {
            if (view.data < file.bytes.data() || view.data + view.bytes > file.bytes.data() + size) __builtin_trap();
            unpack_all(view);
        }
    const auto tokenizer = gguf_tokenizer(file);
    if (!refused(tokenizer)) use(**tokenizer);
    return 0;
}
