// Registries of executors, memory kinds and operations by name. A file adds its own with one line
// at namespace scope:
//     const Registered<Executor, CopyEngine> registered;
// Static linking keeps the registrations because the modules are object libraries.
//
// A registry owns its entries until the process ends: pointers and references to them stay valid.
// Entries are added while the process or a library loads, by one thread; later any number of
// threads read at once. The order of the entries is that of their names.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace waywiser {

enum class ParameterKind { choice, ordered, subset };

// A setting of an executor, operation or memory kind. The first choice is the default. Ordered
// parameters are whole numbers; `choices` are the useful ones for this machine. The value of a
// subset is its default, or one or more of the other choices joined by plus signs.
struct Parameter {
    std::string name;
    std::string description;
    ParameterKind kind = ParameterKind::choice;
    std::vector<std::string> choices;
    bool written = false;  // its default is written in the text of a transfer too

    [[nodiscard]] const std::string& fallback() const { return choices.front(); }
};

struct Info {
    std::string name;
    std::string description;            // one line
    std::vector<Parameter> parameters;  // in general; a machine or path may support fewer
    std::string source;                 // literature reference
};

// instance() is specialised for MemoryKind, Executor and Operation, each in one .cpp file, so that
// the shared libraries of a process use the same object.
template <class T>
class Registry {
public:
    static Registry& instance() {
        static Registry registry;
        return registry;
    }
    void add(std::unique_ptr<T> entry) {
        entries_.push_back(std::move(entry));
        std::ranges::sort(entries_, {}, [](const auto& e) { return e->info().name; });
    }
    [[nodiscard]] const T* find(const std::string& name) const {
        const auto it =
            std::ranges::find_if(entries_, [&](const auto& e) { return e->info().name == name; });
        return it == entries_.end() ? nullptr : it->get();
    }
    [[nodiscard]] const std::vector<std::unique_ptr<T>>& entries() const { return entries_; }

private:
    std::vector<std::unique_ptr<T>> entries_;
};

template <class Base, class Derived>
struct Registered {
    Registered() { Registry<Base>::instance().add(std::make_unique<Derived>()); }
};

}  // namespace waywiser
