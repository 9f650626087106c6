// Models in several GGUF files, <name>-00001-of-00003.gguf and so on: the first has the metadata.
#include <cstdio>

#include "base/refusals.hpp"
#include "weights/gguf_model.hpp"

namespace patchbay::weights {
namespace {

constexpr int64_t kMaxParts = 99999;  // what the names can count

// "-00002-of-00003.gguf"
std::string ending(int64_t part, int64_t parts) {
    char text[48];
    std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", static_cast<int>(part), static_cast<int>(parts));
    return text;
}

std::string of(int64_t part, int64_t parts) { return std::to_string(part) + " of " + std::to_string(parts); }

// Counted from 1; none: it does not say.
std::optional<int64_t> part_of(const GgufHeader& header) {
    const GgufValue* const value = header.find("split.no");
    const auto number = value ? value->integer() : std::nullopt;
    if (!number || *number < 0 || *number >= kMaxParts) return std::nullopt;
    return *number + 1;
}

Result<> add_part(const std::string& path, int64_t part, int64_t parts, GgufFile& file) {
    auto mapping = MappedFile::open(path);
    if (!mapping) return prefixed("part " + of(part, parts) + " of the model " + file.gguf.where, mapping.failure());
    PB_TRY(GgufHeader header, parse_gguf(mapping->bytes(), path));
    const GgufValue* const count = header.find("split.count");
    if (!count || count->integer() != parts || part_of(header) != part)
        return invalid(path + " does not say that it is part " + of(part, parts) + " (split.no, split.count)");
    for (auto& [name, tensor] : header.tensors)
        if (!file.gguf.header.tensors.emplace(name, tensor).second)
            return invalid("tensor '" + name + "' in " + path + " is in another part of the model, too");
    file.others.push_back(*std::move(mapping));
    return {};
}

}  // namespace

Result<> open_gguf_parts(const std::filesystem::path& path, GgufFile& file) {
    const GgufHeader& header = file.gguf.header;
    const GgufValue* const count = header.find("split.count");
    if (!count) return {};
    const int64_t parts = count->integer().value_or(0);
    if (parts < 1 || parts > kMaxParts)
        return invalid(file.gguf.where + ": split.count is " + count->shown() + ", expected a number from 1 to " +
                       std::to_string(kMaxParts));
    if (parts == 1) return {};
    const auto part = part_of(header);
    std::string begin = path.string();
    if (part && *part != 1)
        return invalid(begin + " is part " + of(*part, parts) + " of a model, expected the first (name the file that " +
                       "ends in " + ending(1, parts) + ")");
    if (!part || !begin.ends_with(ending(1, parts)))
        return invalid(begin + " is one of " + std::to_string(parts) + " parts of a model, expected the first, whose " +
                       "name ends in " + ending(1, parts) + ", beside the others");
    begin.resize(begin.size() - ending(1, parts).size());
    for (int64_t i = 2; i <= parts; ++i) PB_CHECK(add_part(begin + ending(i, parts), i, parts, file));
    const GgufValue* const tensors = header.find("split.tensors.count");
    if (tensors && tensors->integer() != static_cast<int64_t>(header.tensors.size()))
        return invalid(file.gguf.where + ": split.tensors.count is " + tensors->shown() + ", but the parts have " +
                       std::to_string(header.tensors.size()));
    return {};
}

}  // namespace patchbay::weights
