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

bool starts_with_any(const std::string& path, const std::vector<std::string>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return path.starts_with(p); });
}

}  // namespace patchbay::tidy
