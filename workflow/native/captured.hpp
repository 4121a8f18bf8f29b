// Captured work read back: the chain of kernels and memsets in a CUDA graph, with which edges are
// programmatic (PDL), and re-issued as ordinary stream launches.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver.hpp"
#include "json.hpp"

namespace graphgain {

/// One edge of a graph, and whether its target was launched with the programmatic attribute.
struct Edge {
  CUgraphNode from;
  CUgraphNode to;
  bool programmatic;
};

inline std::vector<Edge> edges_of(CUgraph graph) {
  std::size_t count = 0;
  check(driver().graph_get_edges(graph, nullptr, nullptr, nullptr, &count), "counting graph edges");
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (count > 0) {
    check(driver().graph_get_edges(graph, from.data(), to.data(), data.data(), &count),
          "reading graph edges");
  }
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < count; ++i) {
    const bool programmatic = data[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    if (programmatic && data[i].from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC) {
      throw Failure("A captured graph has a programmatic edge in launch order, which stream "
                    "launches with the PDL attribute cannot express.");
    }
    edges.push_back({from[i], to[i], programmatic});
  }
  return edges;
}

inline long programmatic_edges(CUgraph graph) {
  long count = 0;
  for (const Edge& edge : edges_of(graph)) count += edge.programmatic ? 1 : 0;
  return count;
}

/// A kernel or memset node with everything needed to issue it again. It owns copies of the
/// arguments, so the graph may go; it can be moved (all it points to is on the heap), not copied.
class CapturedNode {
 public:
  /// `programmatic`: the edge that leads to the node is, so it is issued with the PDL attribute.
  CapturedNode(CUgraphNode node, bool programmatic) : programmatic_(programmatic) {
    CUgraphNodeType type{};
    check(driver().graph_node_get_type(node, &type), "reading a graph node's type");
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      read_kernel(node);
    } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
      check(driver().memset_node_get_params(node, &memset_), "reading a memset node");
      if (memset_.height != 1) throw Failure("A captured memset has rows, which is not handled.");
    } else {
      throw Failure("A captured graph holds a node of type " + std::to_string(type) +
                    "; only kernels and memsets can be issued again.");
    }
  }

  CapturedNode(CapturedNode&&) = default;
  CapturedNode& operator=(CapturedNode&&) = default;

  bool is_kernel() const { return function_ != nullptr; }
  bool programmatic() const { return programmatic_; }

  CUresult issue(CUstream stream) {
    if (!is_kernel()) return issue_memset(stream);
    config_.hStream = stream;
    return launch_(&config_, function_, pointers_.empty() ? nullptr : pointers_.data(),
                   extra_.empty() ? nullptr : extra_.data());
  }

  /// What is launched, without its arguments.
  json::Members description() const {
    if (!is_kernel()) {
      return {{"kind", "memset"},
              {"bytes", memset_.elementSize * memset_.width},
              {"programmatic", programmatic_}};
    }
    using Three = std::array<unsigned, 3>;
    return {{"kind", "kernel"},
            {"name", name_},
            {"grid", json::array(Three{config_.gridDimX, config_.gridDimY, config_.gridDimZ})},
            {"block", json::array(Three{config_.blockDimX, config_.blockDimY, config_.blockDimZ})},
            {"dynamic_shared_bytes", config_.sharedMemBytes},
            {"argument_form", !extra_.empty() ? "buffer" : pointers_.empty() ? "none" : "pointers"},
            {"programmatic", programmatic_}};
  }

 private:
  void read_kernel(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS params{};
    check(driver().kernel_node_get_params(node, &params), "reading a kernel node");
    // A library kernel comes as `kern`, with `func` null; launches take either handle.
    const char* name = nullptr;
    if (params.kern != nullptr) {
      function_ = reinterpret_cast<CUfunction>(params.kern);
      check(driver().kernel_get_name(&name, params.kern), "reading a kernel's name");
    } else {
      function_ = params.func;
      check(driver().func_get_name(&name, params.func), "reading a kernel's name");
    }
    name_ = name;
    config_.gridDimX = params.gridDimX;
    config_.gridDimY = params.gridDimY;
    config_.gridDimZ = params.gridDimZ;
    config_.blockDimX = params.blockDimX;
    config_.blockDimY = params.blockDimY;
    config_.blockDimZ = params.blockDimZ;
    config_.sharedMemBytes = params.sharedMemBytes;
    if (params.kernelParams != nullptr) {
      copy_pointed_arguments(params);
    } else if (params.extra != nullptr) {
      copy_argument_buffer(params.extra);
    }
    copy_attributes(node);
  }

  /// Arguments behind an array of pointers; how many and how large, the kernel tells.
  void copy_pointed_arguments(const CUDA_KERNEL_NODE_PARAMS& params) {
    std::vector<std::size_t> offsets;
    for (std::size_t index = 0;; ++index) {
      std::size_t offset = 0;
      std::size_t size = 0;
      const CUresult status =
          params.kern != nullptr
              ? driver().kernel_get_param_info(params.kern, index, &offset, &size)
              : driver().func_get_param_info(params.func, index, &offset, &size);
      if (status == CUDA_ERROR_INVALID_VALUE) break;  // past the last argument
      check(status, "reading the argument sizes of " + name_);
      arguments_.resize(offset + size);
      std::memcpy(arguments_.data() + offset, params.kernelParams[index], size);
      offsets.push_back(offset);
    }
    for (const std::size_t offset : offsets) pointers_.push_back(arguments_.data() + offset);
  }

  /// Arguments as one buffer: `extra` is a list of pairs (what, value) up to an end mark.
  void copy_argument_buffer(void** extra) {
    const void* from = nullptr;
    std::size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) from = extra[1];
      if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(extra[1]);
    }
    if (from == nullptr || size == 0) throw Failure("Kernel " + name_ + " hides its arguments.");
    arguments_.resize(size);
    std::memcpy(arguments_.data(), from, size);
    buffer_size_ = std::make_unique<std::size_t>(size);
    extra_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments_.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
              buffer_size_.get(), CU_LAUNCH_PARAM_END};
  }

  /// The launch attributes that differ from their defaults, and the programmatic one.
  void copy_attributes(CUgraphNode node) {
    const auto copy = [&](CUlaunchAttributeID id, auto is_set) {
      CUlaunchAttribute attribute{};
      attribute.id = id;
      const CUresult status = driver().kernel_node_get_attribute(node, id, &attribute.value);
      // An attribute that this driver or device does not know cannot have been set.
      if (status == CUDA_ERROR_INVALID_VALUE || status == CUDA_ERROR_NOT_SUPPORTED) return;
      check(status, "reading launch attribute " + std::to_string(id) + " of " + name_);
      if (is_set(attribute.value)) attributes_.push_back(attribute);
    };
    using Value = const CUlaunchAttributeValue&;
    copy(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [](Value v) { return v.clusterDim.x != 0; });
    copy(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
         [](Value v) { return v.preferredClusterDim.x != 0; });
    copy(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, [](Value v) {
      return v.clusterSchedulingPolicyPreference != CU_CLUSTER_SCHEDULING_POLICY_DEFAULT;
    });
    copy(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [](Value v) { return v.cooperative != 0; });
    copy(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
         [](Value v) { return v.accessPolicyWindow.num_bytes != 0; });
    copy(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
         [](Value v) { return v.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT; });
    if (programmatic_) attributes_.push_back(programmatic_attribute());
    config_.attrs = attributes_.data();
    config_.numAttrs = static_cast<unsigned>(attributes_.size());
  }

  CUresult issue_memset(CUstream stream) const {
    const auto& [to, pitch, value, element_bytes, width, height] = memset_;
    switch (element_bytes) {
      case 1:
        return driver().memset_d8(to, static_cast<unsigned char>(value), width, stream);
      case 2:
        return driver().memset_d16(to, static_cast<unsigned short>(value), width, stream);
      default:
        return driver().memset_d32(to, value, width, stream);
    }
  }

  bool programmatic_;
  std::string name_;
  CUfunction function_ = nullptr;  // null: a memset
  CUlaunchConfig config_{};
  std::vector<std::byte> arguments_;
  std::vector<void*> pointers_;                // into arguments_, one an argument, or
  std::vector<void*> extra_;                   // arguments_ as one buffer
  std::unique_ptr<std::size_t> buffer_size_;   // what extra_ points to
  std::vector<CUlaunchAttribute> attributes_;  // what config_ points to
  CUDA_MEMSET_NODE_PARAMS memset_{};
  decltype(Driver::launch_kernel_ex) launch_ = driver().launch_kernel_ex;
};

/// The nodes of `graph` in order of execution. Throws Failure unless they are one chain.
inline std::vector<CapturedNode> read_chain(CUgraph graph) {
  std::size_t count = 0;
  check(driver().graph_get_nodes(graph, nullptr, &count), "counting graph nodes");
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) {
    check(driver().graph_get_nodes(graph, nodes.data(), &count), "reading graph nodes");
  }

  std::map<CUgraphNode, Edge> leaving;
  std::map<CUgraphNode, Edge> arriving;
  bool chain = true;
  for (const Edge& edge : edges_of(graph)) {
    chain &= leaving.emplace(edge.from, edge).second;
    chain &= arriving.emplace(edge.to, edge).second;
  }
  std::vector<CapturedNode> ordered;
  for (const CUgraphNode root : nodes) {
    if (arriving.count(root) > 0) continue;
    chain &= ordered.empty();  // a second root
    if (!chain) break;
    ordered.emplace_back(root, false);
    for (auto next = leaving.find(root); next != leaving.end() && ordered.size() <= count;
         next = leaving.find(next->second.to)) {
      ordered.emplace_back(next->second.to, next->second.programmatic);
    }
  }
  if (!chain || ordered.size() != count) {
    throw Failure("A captured graph of " + std::to_string(count) +
                  " nodes is not one chain, so it cannot be issued on one stream in order.");
  }
  return ordered;
}

}  // namespace graphgain
