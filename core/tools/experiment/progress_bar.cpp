#include "experiment/progress_bar.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/printable.hpp"

namespace patchbay::experiment {
namespace {

double share_done(const RunProgress& p) {
    const double of_run = p.requests > 0 ? static_cast<double>(p.finished) / static_cast<double>(p.requests) : 0;
    return p.runs > 0 ? (static_cast<double>(p.run) + of_run) / static_cast<double>(p.runs) : 0;
}

size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const RunProgress& p, double seconds_left, size_t width) {
    constexpr size_t kCells = 20;
    const double share = share_done(p);
    const auto full = static_cast<size_t>(share * kCells);
    char percent[16], eta[32] = "";
    std::snprintf(percent, sizeof percent, "%3.0f %%", 100 * share);
    if (seconds_left >= 0) {
        const auto s = static_cast<unsigned long>(seconds_left + 0.5);
        std::snprintf(eta, sizeof eta, "  ETA %lu:%02lu", s / 60, s % 60);
    }
    std::string line = "[" + std::string(full, '#') + std::string(kCells - full, '.') + "] " + percent + eta +
                       "  run " + std::to_string(p.run + 1) + "/" + std::to_string(p.runs) + "  " +
                       printable(*p.variant) + ", repeat " + std::to_string(p.repeat + 1) + "  " +
                       std::to_string(p.finished) + "/" + std::to_string(p.requests) + " requests";
    return line.substr(0, width);
}

ProgressBar::ProgressBar(const Clock& clock)
    : clock_(clock), on_terminal_(isatty(STDERR_FILENO) == 1), start_ns_(clock.now_ns()), last_ns_(start_ns_) {}

ProgressBar::~ProgressBar() {
    if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(const RunProgress& p) {
    constexpr uint64_t kBetweenNs = 200'000'000;
    constexpr double kShareForEta = 0.02; // before it an estimate would only jump
    if (!on_terminal_) return;
    const uint64_t now = clock_.now_ns();
    if (now - last_ns_ < kBetweenNs) return;
    last_ns_ = now;
    drawn_ = true;
    const double share = share_done(p), spent = static_cast<double>(now - start_ns_) * 1e-9;
    const std::string line =
        progress_line(p, share > kShareForEta ? spent * (1 - share) / share : -1, terminal_width() - 1);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
}

}  // namespace patchbay::experiment
