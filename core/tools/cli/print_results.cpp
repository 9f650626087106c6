#include "cli/print_results.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/printable.hpp"
#include "experiment/class_table.hpp"
#include "experiment/summary_table.hpp"

namespace patchbay::cli {
namespace {

constexpr size_t kColumns = 100;   // of sentences
constexpr size_t kMaxNotes = 4;    // on a screen; one has some 40 lines, and 16 variants need half of them
constexpr size_t kMaxNoteBytes = 260;

std::string wrapped(const std::string& text) { return experiment::wrapped(printable_message(text), kColumns); }

void print_notes(const std::vector<std::string>& notes, Detail detail) {
    const bool all = detail == Detail::kFull;
    const size_t count = all ? notes.size() : std::min(notes.size(), kMaxNotes);
    bool cut = count < notes.size();
    for (size_t i = 0; i < count; ++i) {
        const std::string note = all ? notes[i] : printable(notes[i], kMaxNoteBytes);
        cut |= note.size() < notes[i].size();
        std::cout << wrapped("note: " + note) << '\n';
    }
    if (count < notes.size()) std::cout << "note: and " << notes.size() - count << " more\n";
    if (cut) std::cout << "the notes in full: --full, or the report\n";
}

}  // namespace

void print_results(const ShownResults& r, Detail detail) {
    std::vector<std::string> names;
    for (const std::string& name : r.variants) names.push_back(printable(name, 1000));
    if (!r.question.empty()) std::cout << printable_lines(r.question) << '\n';
    std::cout << wrapped(r.conclusion->sentence) << "\n";
    print_notes(r.conclusion->notices, detail);
    std::cout << '\n';
    const auto colour = isatty(STDOUT_FILENO) == 1 ? experiment::Colour::kOn : experiment::Colour::kOff;
    const auto table = detail == Detail::kFull ? experiment::results_table : experiment::summary_table;
    std::cout << table(*r.conclusion, names, r.baseline, colour);
    if (!r.conclusion->counted.empty()) std::cout << wrapped(r.conclusion->counted) << '\n';
    const auto intervals =
        detail == Detail::kFull ? experiment::Intervals::kShown : experiment::Intervals::kHidden;
    if (const std::string classes = experiment::class_table(*r.conclusion, names, r.baseline, intervals);
        !classes.empty())
        std::cout << '\n' << classes;
    if (!r.conclusion->quality.empty())
        std::cout << '\n' << experiment::quality_text(r.conclusion->quality, names, r.baseline);
    if (!r.swaps.empty()) std::cout << '\n';
    for (const std::string& swap : r.swaps) std::cout << wrapped("swap: " + swap) << '\n';
    std::cout << '\n';
}

}  // namespace patchbay::cli
