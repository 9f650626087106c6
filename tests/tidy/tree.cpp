#include "tree.hpp"
#include "file_text.hpp"
#include "paths.hpp"

#include <algorithm>
#include <sstream>

namespace patchbay::tidy {

namespace fs = std::filesystem;

std::string read(const fs::path& file) { return file_text(file); }

const std::vector<SourceText>& sources() {
    static const std::vector<SourceText> all = [] {
        std::vector<SourceText> out;
        const fs::path root = kSourceDir;
        for (const char* folder : {"core", "plugins", "kernels", "metrics", "templates", "tests"})
            for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
                const std::string ending = entry.path().extension().string();
                if (ending != ".h" && ending != ".hpp" && ending != ".cpp" && ending != ".c" && ending != ".inc" &&
                    ending != ".cu" && ending != ".cuh")
                    continue;
                SourceText file{fs::relative(entry.path(), root).string(), {}};
                std::istringstream in(read(entry.path()));
                for (std::string line; std::getline(in, line);) file.lines.push_back(line);
                out.push_back(std::move(file));
            }
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
        return out;
    }();
    return all;
}

std::string code_of(const SourceText& file) {
    std::string text, out;
    for (const std::string& line : file.lines) text += line + "\n";
    size_t at = 0;
    const auto skip_to = [&](const std::string& end, size_t from) {
        const size_t found = text.find(end, from), next = found == text.npos ? text.size() : found + end.size();
        out.append(static_cast<size_t>(std::count(text.begin() + static_cast<ptrdiff_t>(at),
                                                  text.begin() + static_cast<ptrdiff_t>(next), '\n')), '\n');
        at = next;
    };
    const auto begins = [&](std::string_view with) { return text.compare(at, with.size(), with) == 0; };
    while (at < text.size()) {
        const bool in_number = at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])); // 1'000
        if (begins("//")) skip_to("\n", at);
        else if (begins("/*")) skip_to("*/", at);
        else if (begins("R\"")) skip_to(")" + text.substr(at + 2, text.find('(', at) - at - 2) + "\"", at);
        else if (text[at] == '"' || (text[at] == '\'' && !in_number)) {
            const char quote = text[at++];
            for (; at < text.size() && text[at] != quote; ++at)
                if (text[at] == '\\') ++at;
            ++at;
        } else out += text[at++];
    }
    return out;
}

bool starts_with_any(const std::string& path, const std::vector<std::string>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return path.starts_with(p); });
}

}  // namespace patchbay::tidy
