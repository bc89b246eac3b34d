// The memory that one rank holds for an end of a transfer between ranks, and the bytes in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "measure/buffers.hpp"
#include "measure/pattern.hpp"
#include "waywiser/executor.hpp"

namespace waywiser::measure {

class RankMemory {
public:
    // Returns the memory of a transfer with one memory at each end.
    static RankMemory of_pair(const Transfer& transfer, Side side, std::uint64_t seed,
                              const Machine& machine, BufferPool& pool);
    // Returns the memory of a rank that holds one of an exchange. Bytes behind it are checked too.
    static std::optional<RankMemory> of_exchange(const Transfer& transfer, const Exchange& exchange,
                                                 Side side, int rank, std::uint64_t seed,
                                                 const Machine& machine, BufferPool& pool);

    [[nodiscard]] View view() const;
    [[nodiscard]] const Buffer& buffer() const { return *buffer_; }
    [[nodiscard]] std::string named() const { return named_; }

    // The source gets its bytes, the destination others everywhere.
    void fill(const Machine& machine) const;
    // Throws WrongBytes unless it has the bytes that it has after the transfer.
    void check(const Transfer& transfer, const Machine& machine) const;

private:
    // Contiguous bytes of one pattern.
    struct Stretch {
        std::size_t offset = 0;
        std::size_t bytes = 0;
        std::uint64_t seed = 0;
        std::size_t at = 0;    // position of the first in the pattern
        bool arrives = false;  // else it is there before, and stays
    };
    // An exchange in which sums arrive, and which of its memories this is.
    struct Summed {
        Exchange exchange;
        std::uint64_t seed = 0;
        std::size_t number = 0;
        std::size_t sources = 0;
    };
    RankMemory(const Memory& named, Memory local, Side side, std::size_t bytes,
               std::vector<Stretch> stretches, BufferPool& pool);
    [[nodiscard]] View view(const Stretch& stretch) const;
    void fill_summed() const;
    [[nodiscard]] Mismatch check_summed() const;
    [[noreturn]] void fail(Mismatch wrong, std::size_t of, const char* where,
                           const Transfer& transfer) const;

    std::string named_;
    std::unique_ptr<Memory> local_;  // views point to it
    Side side_;
    std::size_t bytes_;
    std::vector<Stretch> stretches_;
    std::optional<Summed> summed_;
    std::shared_ptr<Buffer> buffer_;
};

}  // namespace waywiser::measure
