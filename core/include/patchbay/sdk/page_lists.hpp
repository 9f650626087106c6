// patchbay/sdk/page_lists.hpp - lists of pages by id, a page in at most one of them. Every operation but reset() is
// O(1) and allocates nothing. For policies of the prefix cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace patchbay {

class PageLists {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    explicit PageLists(uint32_t lists) : lists_(lists) { reset(0); }

    void reset(uint32_t total_pages) { // all lists are empty; ids are below total_pages
        pages_ = total_pages;
        links_.resize(size_t{total_pages} + lists_);
        for (uint32_t i = 0; i < links_.size(); ++i) links_[i] = {i, i};
    }
    bool has(uint32_t page) const { return links_[page].next != page; } // whether it is in a list
    void push_back(uint32_t list, uint32_t page) { // out of the list that it is in
        remove(page);
        const uint32_t end = pages_ + list, last = links_[end].previous;
        links_[page] = {last, end};
        links_[last].next = links_[end].previous = page;
    }
    void remove(uint32_t page) { // out of the list that it is in, if it is in one
        const Link link = links_[page];
        links_[link.previous].next = link.next;
        links_[link.next].previous = link.previous;
        links_[page] = {page, page};
    }
    uint32_t first(uint32_t list) const { return next(pages_ + list); }              // kNone: it is empty
    uint32_t next(uint32_t page) const { // kNone: it is the last
        const uint32_t next = links_[page].next;
        return next < pages_ ? next : kNone;
    }

  private:
    struct Link {
        uint32_t previous, next;
    };
    uint32_t lists_, pages_ = 0;
    std::vector<Link> links_; // of the pages, then the ring that each list is: itself where there is no other
};

}  // namespace patchbay
