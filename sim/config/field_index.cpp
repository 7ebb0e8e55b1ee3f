// SPDX-License-Identifier: Apache-2.0
#include "sim/config/field_index.hpp"

namespace trainsim::config {

FieldIndex::FieldIndex(const Value& root) : root_(root.at) {
  add(root, "");
}

void FieldIndex::add(const Value& value, const std::string& path) {
  for (const Entry& entry : value.entries) {
    const std::string field = join_path(path, entry.key);
    places_[field] = entry.value.kind == Kind::kMap ? entry.at : entry.value.at;
    add(entry.value, field);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const std::string field = path + "[" + std::to_string(i) + "]";
    places_[field] = value.items[i].at;
    add(value.items[i], field);
  }
}

Position FieldIndex::locate(const std::string& field) const {
  std::string path = field;
  while (!path.empty()) {
    const auto place = places_.find(path);
    if (place != places_.end()) return place->second;
    const std::size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return root_;
}

}  // namespace trainsim::config
