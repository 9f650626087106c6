#include "top/top.hpp"

#include <poll.h>

#include <csignal>
#include <limits>
#include <ostream>

#include "top/screen.hpp"
#include "top/status_fields.hpp"
#include "top/terminal.hpp"

namespace patchbay::top {
namespace {

const Wakeup* to_wake = nullptr; // by a signal
volatile std::sig_atomic_t was_ended = 0;

// SIGINT and SIGTERM end the loop, which restores the terminal.
class EndingSignals {
  public:
    explicit EndingSignals(const Wakeup& wakeup) {
        to_wake = &wakeup;
        struct sigaction how {};
        how.sa_handler = [](int) {
            was_ended = 1;
            to_wake->wake();
        };
        for (size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &how, &before_[i]);
    }
    ~EndingSignals() {
        for (size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &before_[i], nullptr);
    }
    EndingSignals(const EndingSignals&) = delete;
    EndingSignals& operator=(const EndingSignals&) = delete;

  private:
    static constexpr int kSignals[] = {SIGINT, SIGTERM};
    struct sigaction before_[2] {};
};

// Until there is news, a key where `keys`, or the time is over.
void wait_for_news(const Wakeup& wakeup, bool keys, int timeout_ms) {
    pollfd fds[] = {{wakeup.fd(), POLLIN, 0}, {keys ? 0 : -1, POLLIN, 0}};
    poll(fds, 2, timeout_ms); // a signal ends it too: the size of the screen may have changed
    wakeup.clear();
    if (fds[1].revents & (POLLHUP | POLLERR)) was_ended = 1; // the terminal is gone
}

// The next sample, or why there is none. None: the program is to end.
std::optional<Result<Sample>> next_look(const Wakeup& wakeup, EngineLink& link) {
    while (!was_ended) {
        EngineLink::News news = link.take_news();
        if (news.sample) return *std::move(news.sample);
        if (news.trouble) return *news.trouble;
        wait_for_news(wakeup, false, -1);
    }
    return std::nullopt;
}

class Live {
  public:
    Live(const TopOptions& options, Sample first, std::unique_ptr<Terminal> terminal, const Wakeup& wakeup,
         EngineLink& link)
        : wakeup_(wakeup), glyphs_(locale_is_utf8() ? unicode_glyphs() : ascii_glyphs()),
          terminal_(std::move(terminal)),
          screen_(options.source.routes == Source::Routes::kAdmin ? Screen::Control::kFull
                                                                  : Screen::Control::kWatchOnly),
          link_(link) {
        keep(std::move(first));
    }

    void run() {
        while (!was_ended) {
            terminal_->paint(screen_.lines({history_, status_, address_, trouble_, glyphs_}, terminal_->size()));
            constexpr int kLongestMs = 60'000;
            wait_for_news(wakeup_, true, kLongestMs);
            take_news();
            while (const auto key = terminal_->read_key())
                if (!follow(*key)) return;
        }
    }

  private:
    void keep(Sample sample) {
        history_.add(sample.at_seconds, std::move(sample.scrape));
        status_ = std::move(sample.status);
        address_ = std::move(sample.address);
        trouble_.clear();
    }

    void take_news() {
        EngineLink::News news = link_.take_news();
        if (news.sample) keep(*std::move(news.sample));
        if (news.trouble) trouble_ = news.trouble->text;
        if (news.outcome)
            screen_.show_answer(*news.outcome ? **news.outcome : news.outcome->error(),
                                *news.outcome ? Style::kGood : Style::kBad);
        if (news.plugins && wanted_) screen_.open(*wanted_, slot_choices(status_, *news.plugins));
        if (news.plugins || news.outcome) wanted_.reset();
    }

    bool follow(Key key) { // false: quit
        Screen::Wish wish = screen_.on_key(key);
        if (wish.order) link_.send(*wish.order);
        if (wish.dialog) {
            wanted_ = wish.dialog;
            screen_.show_answer("looking for plugins", Style::kFaint);
            link_.ask_for_plugins();
        }
        return !wish.quit;
    }

    const Wakeup& wakeup_;
    const Glyphs& glyphs_;
    const std::unique_ptr<Terminal> terminal_;
    History history_;
    Json status_;
    std::string address_, trouble_;
    Screen screen_;
    std::optional<Order::What> wanted_; // the dialog that opens with the list of plugins
    EngineLink& link_;
};

Result<> print_plain(const TopOptions& options, Sample sample, const Wakeup& wakeup, EngineLink& link,
                     std::ostream& out) {
    constexpr PageSize kWide{100, 1000, false};
    constexpr size_t kUncut = std::numeric_limits<size_t>::max();
    const Glyphs& glyphs = locale_is_utf8() ? unicode_glyphs() : ascii_glyphs();
    History history;
    history.add(sample.at_seconds, std::move(sample.scrape));
    while (const auto news = next_look(wakeup, link)) {
        const bool once = options.output == TopOptions::Output::kOnce;
        if (!*news && once) return news->failure();
        if (*news) {
            sample = *std::move(*news);
            history.add(sample.at_seconds, std::move(sample.scrape));
        }
        const View view{history, sample.status, sample.address, *news ? "" : news->error(), glyphs};
        out << headline(view, kUncut).text() << '\n';
        if (*news) {
            out << '\n';
            for (const Lines& page : {overview_page(view, kWide), plugins_page(view, kWide)})
                for (const Line& line : page) out << line.text() << '\n';
        }
        if (!out.flush() || once) break;
    }
    return {};
}

}  // namespace

Result<> run_top(const TopOptions& options, std::ostream& out) {
    const Wakeup wakeup;
    const EndingSignals signals(wakeup);
    locale_is_utf8(); // sets the locale: before there is another thread, and before ncurses begins
    EngineLink link(options.source, options.interval, wakeup);
    auto first = next_look(wakeup, link);
    if (!first) return {};
    if (!*first) return first->failure();
    if (options.output != TopOptions::Output::kLive)
        return print_plain(options, *std::move(*first), wakeup, link, out);
    PB_TRY(auto terminal, Terminal::open());
    Live(options, *std::move(*first), std::move(terminal), wakeup, link).run();
    return {};
}

}  // namespace patchbay::top
