// The contexts that all threads share. One may be released and made again while threads use others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "fuzz/draw.hpp"
#include "waywiser/transfer.hpp"

namespace waywiser::fuzz {

struct ContextKind {
    const char* name;
    void (*set)(ContextOptions& options, int gpus);
};
const std::vector<ContextKind>& context_kinds();

class Contexts {
public:
    // `kinds`: names of those to draw from; none: all.
    Contexts(std::size_t count, int gpus, const std::vector<std::string>& kinds, Draw& draw);

    // Keeps a context from being released.
    class Use {
    public:
        [[nodiscard]] waywiser_context* get() const { return context_; }
        [[nodiscard]] const std::string& kind() const { return kind_; }

    private:
        friend Contexts;
        std::shared_lock<std::shared_mutex> lock_;
        waywiser_context* context_ = nullptr;  // null if it could not be made
        std::string kind_;
    };
    [[nodiscard]] std::size_t count() const { return slots_.size(); }
    [[nodiscard]] Use use(std::size_t number) const;
    // How often the context was released.
    [[nodiscard]] std::size_t releases(std::size_t number) const {
        return slots_[number]->releases;
    }
    // Releases it and makes another one; returns the status of that.
    waywiser_status replace(std::size_t number, Draw& draw);
    void release_all();

private:
    struct Slot {
        mutable std::shared_mutex mutex;
        std::unique_ptr<Context> context;
        std::string kind;
        std::atomic<std::size_t> releases{0};
    };
    waywiser_status make(Slot& slot, Draw& draw) const;

    int gpus_;
    std::vector<const ContextKind*> kinds_;
    std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace waywiser::fuzz
