#include "host/probe_wire.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_file.hpp"
#include "base/printable.hpp"

namespace patchbay::host {

using json = nlohmann::json;

namespace {

constexpr JsonLimits kLineLimits{.bytes = 4u << 20, .depth = 16};
constexpr size_t kMaxLines = 100'000;

std::optional<CheckOutcome> outcome_of(const std::string& word) {
    if (word == "ok") return CheckOutcome::kOk;
    if (word == "failed") return CheckOutcome::kFailed;
    if (word == "skipped") return CheckOutcome::kSkipped;
    return std::nullopt;
}

const char* word_of(CheckOutcome outcome) {
    return outcome == CheckOutcome::kOk ? "ok" : outcome == CheckOutcome::kFailed ? "failed" : "skipped";
}

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string ending_line(const ProbeEnding& ending) {
    return std::to_string(static_cast<int>(ending.how)) + " " + std::to_string(ending.value) + "\n";
}

ProbeEnding read_ending(std::string_view line) {
    std::istringstream in{std::string(line)};
    int how = 0;
    uint64_t value = 0;
    if (!(in >> how >> value) || how < 0 || how >= static_cast<int>(ProbeEnding::How::kLost)) return {};
    return {static_cast<ProbeEnding::How>(how), value};
}

std::string describe(const ProbeEnding& ending) {
    const std::string value = std::to_string(ending.value);
    switch (ending.how) {
        case ProbeEnding::How::kExited: return "ended the process with exit code " + value;
        case ProbeEnding::How::kSignal:
            return "ended by signal " + value + " (" + strsignal(static_cast<int>(ending.value)) + ")";
        case ProbeEnding::How::kTimeout: return "the probe took longer than " + value + " s in all: killed";
        case ProbeEnding::How::kMemory:
            return "took more memory than the " + std::to_string(ending.value >> 20) +
                   " MiB of a probe: killed (PATCHBAY_PROBE_MEMORY_MIB sets another limit)";
        case ProbeEnding::How::kTasks: return "started more than " + value + " processes and threads: killed";
        case ProbeEnding::How::kLost: break;
    }
    return "the supervisor of its process could not begin, or was killed, by this machine or by the library";
}

void ProbeWriter::write(const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;  // the parent is gone, or sees a verdict that is cut short
        done += static_cast<size_t>(n);
    }
}

void ProbeWriter::begin(const std::string& component, const std::string& check) {
    write(dump({{"begin", check}, {"component", component}}));
}

void ProbeWriter::end(CheckOutcome outcome, const std::string& reason) {
    write(dump({{"end", word_of(outcome)}, {"reason", reason}}));
}

void ProbeWriter::line(const CheckLine& line) {
    begin(line.component, line.check);
    end(line.outcome, line.reason);
}

void ProbeWriter::done(const Manifest* manifest) {
    write(dump({{"done", true}, {"manifest", manifest ? json::parse(manifest_text(*manifest)) : json()}}));
}

ProbeTranscript read_transcript(std::string_view bytes, const std::filesystem::path& library) {
    ProbeTranscript t;
    while (!bytes.empty() && t.fault.empty() && !t.done) {
        const size_t newline = bytes.find('\n');
        if (newline == std::string_view::npos || t.lines.size() >= kMaxLines) break;  // the child died in mid-word
        const auto parsed = parse_json(bytes.substr(0, newline), "the probe's verdict", kLineLimits);
        bytes.remove_prefix(newline + 1);
        if (!parsed) {
            t.fault = parsed.error();
            break;
        }
        try {
            const json& j = *parsed;
            if (j.contains("begin")) {
                t.open = CheckLine{printable(j.at("component").get<std::string>()),
                                   printable(j.at("begin").get<std::string>()), CheckOutcome::kFailed, ""};
            } else if (j.contains("end") && t.open) {
                const auto outcome = outcome_of(j.at("end").get<std::string>());
                if (!outcome) t.fault = "the probe's verdict has an unknown outcome";
                t.open->outcome = outcome.value_or(CheckOutcome::kFailed);
                t.open->reason = printable_message(j.at("reason").get<std::string>()); // of the library under test
                t.lines.push_back(*std::exchange(t.open, std::nullopt));
            } else if (j.contains("done")) {
                t.done = true;
                if (!j.at("manifest").is_null()) {
                    auto manifest = parse_manifest(j["manifest"].dump(), manifest_path(library));
                    if (manifest)
                        t.manifest = *std::move(manifest);
                    else
                        t.fault = manifest.error();
                }
            } else {
                t.fault = "the probe's verdict has a line that is none";
            }
        } catch (const json::exception& e) {
            t.fault = "the probe's verdict cannot be read: " + json_reason(e);
        }
    }
    return t;
}

}  // namespace patchbay::host
