#include "transfer/warnings.hpp"

#include <algorithm>

#include "transfer/process_state.hpp"

namespace waywiser::transfer {

void Warnings::add(const std::string& message) {
    constexpr std::size_t kMostWarnings = 64;
    {
        const std::lock_guard lock(mutex_);
        if (texts_.size() == kMostWarnings || std::ranges::find(texts_, message) != texts_.end()) {
            return;
        }
        texts_.push_back(message);
        bytes_ += message.size() + 1;
    }
    if (!log_.add(message) && report_) report_once(message);
}

std::vector<std::string> Warnings::all() const {
    const std::lock_guard lock(mutex_);
    return texts_;
}

}  // namespace waywiser::transfer
