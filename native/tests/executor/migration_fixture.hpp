// A managed buffer and a transfer that migrates it, on the fake.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "fake/fixture.hpp"
#include "many_bytes.hpp"
#include "units.hpp"

namespace waywiser::test {

inline Transfer migration(const std::string& executor, const char* from, const char* to,
                          const Settings& parameters = {}, const Settings& variant = {}) {
    return {{{"managed", Place::parse(from), variant}, {"managed", Place::parse(to), {}}, executor},
            4096,
            parameters};
}

inline gpu::Location location(const char* place) {
    const Place at = Place::parse(place);
    if (at.kind == Place::Kind::gpu) return {.device = at.index};
    return {.node = at.index};
}

// A filled buffer and a prepared execution: the same view is source and destination.
class Migration {
public:
    Migration(const Transfer& transfer, const Machine& machine, std::size_t bytes)
        : transfer_(transfer),
          buffer_(
              Memories::instance().find("managed")->allocate(transfer.path.source, bytes, machine)),
          caller_(transfer_, machine),
          execution_(caller_.prepare()),
          sent_(sequence(buffer_->bytes(), 11)) {
        gpu::copy_sync(buffer_->data(), sent_.data(), sent_.size(), 0);
    }

    [[nodiscard]] View view(std::size_t offset, std::size_t bytes) const {
        return {buffer_->data() + offset, bytes, &transfer_.path.source};
    }
    void restore(std::size_t offset, std::size_t bytes) const {
        execution_->restore(view(offset, bytes), view(offset, bytes));
    }
    void start(std::size_t offset, std::size_t bytes) const {
        execution_->start(view(offset, bytes), view(offset, bytes));
        execution_->finish();
    }
    // The place of the byte, according to the fake.
    [[nodiscard]] gpu::Location at(std::size_t offset) const {
        return fake::location(buffer_->data() + offset);
    }
    [[nodiscard]] bool holds_what_was_sent() const {
        std::vector<std::byte> now(sent_.size());
        gpu::copy_sync(now.data(), buffer_->data(), now.size(), 0);
        return same_bytes(now, sent_);
    }
    [[nodiscard]] const Caller& caller() const { return caller_; }
    [[nodiscard]] Execution& execution() const { return *execution_; }

private:
    Transfer transfer_;
    std::unique_ptr<Buffer> buffer_;
    Caller caller_;
    std::unique_ptr<Execution> execution_;
    std::vector<std::byte> sent_;
};

}  // namespace waywiser::test
