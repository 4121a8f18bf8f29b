// A captured graph taken apart and issued again from a C++ loop: the library behind
// graphgain.unroll. A shared library with a C interface; it holds no kernel, so nvcc only hands it
// to the host compiler, and it finds the driver through the CUDA runtime, so it loads anywhere.
//
// What can be issued again: kernels, memsets and memcpys that form one chain.

#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "../captured.hpp"
#include "../driver.hpp"
#include "../failure.hpp"
#include "../json.hpp"

namespace graphgain {
namespace {

const char* kind_name(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "memset";
    case CU_GRAPH_NODE_TYPE_HOST: return "host function";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "child graph";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "empty node";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "wait for an event";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "record of an event";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "memory allocation";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "memory release";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "conditional node";
    default: return "node of a kind unknown here";
  }
}

CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type{};
  check(driver().graph_node_get_type(node, &type), "reading a graph node's type");
  return type;
}

/// A memset of several rows; `CapturedNode` issues those of one row.
class RowsMemset {
 public:
  explicit RowsMemset(const CUDA_MEMSET_NODE_PARAMS& params) : params_(params) {}

  CUresult issue(CUstream stream) const {
    const auto& [to, pitch, value, element_bytes, width, height] = params_;
    switch (element_bytes) {
      case 1: return d8_(to, pitch, static_cast<unsigned char>(value), width, height, stream);
      case 2: return d16_(to, pitch, static_cast<unsigned short>(value), width, height, stream);
      default: return d32_(to, pitch, value, width, height, stream);
    }
  }

  json::Members description() const {
    return {{"kind", "memset"}, {"bytes", params_.elementSize * params_.width * params_.height}};
  }

 private:
  CUDA_MEMSET_NODE_PARAMS params_;
  decltype(&::cuMemsetD2D8Async) d8_ =
      driver_entry<decltype(&::cuMemsetD2D8Async)>("cuMemsetD2D8Async");
  decltype(&::cuMemsetD2D16Async) d16_ =
      driver_entry<decltype(&::cuMemsetD2D16Async)>("cuMemsetD2D16Async");
  decltype(&::cuMemsetD2D32Async) d32_ =
      driver_entry<decltype(&::cuMemsetD2D32Async)>("cuMemsetD2D32Async");
};

/// A copy: one row goes by address alone (unified addressing tells host from device), the rest as
/// the three-dimensional copy that it was captured as.
class Memcpy {
 public:
  explicit Memcpy(CUgraphNode node) {
    using Get = decltype(&::cuGraphMemcpyNodeGetParams);
    static const auto get = driver_entry<Get>("cuGraphMemcpyNodeGetParams");
    check(get(node, &params_), "reading a memcpy node");
    flat_ = params_.Height <= 1 && params_.Depth <= 1 &&
            params_.srcMemoryType != CU_MEMORYTYPE_ARRAY &&
            params_.dstMemoryType != CU_MEMORYTYPE_ARRAY;
    from_ = address(params_.srcMemoryType, params_.srcHost, params_.srcDevice) +
            params_.srcXInBytes;
    to_ = address(params_.dstMemoryType, params_.dstHost, params_.dstDevice) + params_.dstXInBytes;
  }

  CUresult issue(CUstream stream) const {
    return flat_ ? copy_(to_, from_, params_.WidthInBytes, stream) : copy_3d_(&params_, stream);
  }

  json::Members description() const {
    const auto rows = std::max<std::size_t>(params_.Height, 1);
    const auto slices = std::max<std::size_t>(params_.Depth, 1);
    return {{"kind", "memcpy"}, {"bytes", params_.WidthInBytes * rows * slices}};
  }

 private:
  static CUdeviceptr address(CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  }

  CUDA_MEMCPY3D params_{};
  bool flat_ = false;
  CUdeviceptr from_ = 0;
  CUdeviceptr to_ = 0;
  decltype(&::cuMemcpyAsync) copy_ = driver_entry<decltype(&::cuMemcpyAsync)>("cuMemcpyAsync");
  decltype(&::cuMemcpy3DAsync) copy_3d_ =
      driver_entry<decltype(&::cuMemcpy3DAsync)>("cuMemcpy3DAsync");
};

using Step = std::variant<CapturedNode, RowsMemset, Memcpy>;

Step read_step(CUgraphNode node, CUgraphNodeType type, bool programmatic) {
  if (type == CU_GRAPH_NODE_TYPE_MEMCPY) return Memcpy(node);
  if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS params{};
    check(driver().memset_node_get_params(node, &params), "reading a memset node");
    if (params.height != 1) return RowsMemset(params);
  }
  return CapturedNode(node, programmatic);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// Name and bytes of arguments of a kernel node.
json::Members kernel_details(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  check(driver().kernel_node_get_params(node, &params), "reading a kernel node");
  const char* name = nullptr;
  check(params.kern != nullptr ? driver().kernel_get_name(&name, params.kern)
                               : driver().func_get_name(&name, params.func),
        "reading a kernel's name");
  std::size_t bytes = 0;
  if (params.kernelParams != nullptr) {
    std::size_t offset = 0;
    std::size_t size = 0;
    for (std::size_t index = 0;; ++index) {
      const CUresult status =
          params.kern != nullptr
              ? driver().kernel_get_param_info(params.kern, index, &offset, &size)
              : driver().func_get_param_info(params.func, index, &offset, &size);
      if (status != CUDA_SUCCESS) break;  // past the last argument
      bytes = offset + size;
    }
  } else if (params.extra != nullptr) {
    for (void** pair = params.extra; *pair != CU_LAUNCH_PARAM_END; pair += 2) {
      if (pair[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<std::size_t*>(pair[1]);
    }
  }
  return {{"demangled", demangled(name)}, {"argument_bytes", bytes}};
}

json::Value describe(CUgraphNode node, CUgraphNodeType type, bool programmatic, const Step& step) {
  json::Members members = std::visit([](const auto& one) { return one.description(); }, step);
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    const json::Members details = kernel_details(node);
    members.insert(members.end(), details.begin(), details.end());
  } else if (!std::holds_alternative<CapturedNode>(step)) {
    members.push_back({"programmatic", programmatic});
  }
  return json::object(members);
}

struct ChainNode {
  CUgraphNode node;
  CUgraphNodeType type;
  bool programmatic;
};

/// The nodes in order of execution. Throws Failure for a graph that is not one chain, and for the
/// first node of a kind that a stream cannot be given again.
std::vector<ChainNode> read_nodes(CUgraph graph) {
  std::size_t count = 0;
  check(driver().graph_get_nodes(graph, nullptr, &count), "counting graph nodes");
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) {
    check(driver().graph_get_nodes(graph, nodes.data(), &count), "reading graph nodes");
  }
  for (const CUgraphNode node : nodes) {
    const CUgraphNodeType type = type_of(node);
    const bool known = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET ||
                       type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_EMPTY;
    if (!known) {
      throw Failure("The graph holds a " + std::string(kind_name(type)) +
                    ", and only kernels, memsets and memcpys can be issued again: capture a "
                    "forward without it.");
    }
  }

  std::map<CUgraphNode, Edge> leaving;
  std::map<CUgraphNode, Edge> arriving;
  bool chain = true;
  for (const Edge& edge : edges_of(graph)) {
    chain &= leaving.emplace(edge.from, edge).second;
    chain &= arriving.emplace(edge.to, edge).second;
  }
  std::vector<CUgraphNode> roots;
  for (const CUgraphNode node : nodes) {
    if (arriving.count(node) == 0) roots.push_back(node);
  }
  if (!chain || roots.size() > 1) {
    throw Failure("The graph of " + std::to_string(count) +
                  " nodes has branches, and one stream issues one node after the other: capture "
                  "a forward that uses a single stream.");
  }
  std::vector<ChainNode> ordered;
  const auto add = [&](CUgraphNode node, bool programmatic) {
    const CUgraphNodeType type = type_of(node);
    if (type != CU_GRAPH_NODE_TYPE_EMPTY) ordered.push_back({node, type, programmatic});
  };
  for (CUgraphNode node : roots) {
    add(node, false);
    for (auto next = leaving.find(node); next != leaving.end(); next = leaving.find(node)) {
      node = next->second.to;
      add(node, next->second.programmatic);
    }
  }
  return ordered;
}

/// A graph's steps, each twice: with the PDL attribute where it was captured, and without.
class Unrolled {
 public:
  explicit Unrolled(CUgraph graph) {
    std::vector<json::Value> nodes;
    for (const auto& [node, type, programmatic] : read_nodes(graph)) {
      with_pdl_.push_back(read_step(node, type, programmatic));
      without_pdl_.push_back(read_step(node, type, false));
      nodes.push_back(describe(node, type, programmatic, with_pdl_.back()));
    }
    description_ = json::array(nodes, ",\n").text;
  }

  const std::string& description() const { return description_; }

  /// Issues the steps `first` to before `last`; returns the host's microseconds.
  double issue(CUstream stream, bool pdl, std::size_t first, std::size_t last) {
    std::vector<Step>& steps = pdl ? with_pdl_ : without_pdl_;
    if (first > last || last > steps.size()) {
      throw Failure("Steps " + std::to_string(first) + " to " + std::to_string(last) +
                    " were asked for, and there are " + std::to_string(steps.size()) + ".");
    }
    CUresult status = CUDA_SUCCESS;
    std::size_t index = first;
    const auto start = std::chrono::steady_clock::now();
    for (; index < last && status == CUDA_SUCCESS; ++index) {
      status = std::visit([stream](auto& step) { return step.issue(stream); }, steps[index]);
    }
    const auto end = std::chrono::steady_clock::now();
    check(status, "issuing step " + std::to_string(index - 1));
    return std::chrono::duration<double, std::micro>(end - start).count();
  }

 private:
  std::vector<Step> with_pdl_;
  std::vector<Step> without_pdl_;
  std::string description_;
};

thread_local std::string last_error;

/// Runs `body`; an exception becomes the sentence of `graphgain_unroll_error` and returns `failed`.
template <class Result, class Body>
Result guarded(Result failed, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

}  // namespace
}  // namespace graphgain

extern "C" {

/// The sentence about the last failure on this thread.
const char* graphgain_unroll_error() { return graphgain::last_error.c_str(); }

/// Takes a `cudaGraph_t` apart; null after a failure. The graph may go, what it used may not.
void* graphgain_unroll_read(void* graph) {
  return graphgain::guarded<void*>(
      nullptr, [&] { return new graphgain::Unrolled(static_cast<CUgraph>(graph)); });
}

void graphgain_unroll_free(void* unrolled) { delete static_cast<graphgain::Unrolled*>(unrolled); }

/// The nodes as a JSON array, which lives as long as `unrolled`.
const char* graphgain_unroll_describe(void* unrolled) {
  return static_cast<graphgain::Unrolled*>(unrolled)->description().c_str();
}

/// Issues steps [first, last) on a stream; the host's microseconds, or a negative number after a
/// failure.
double graphgain_unroll_issue(void* unrolled, void* stream, int pdl, unsigned long first,
                              unsigned long last) {
  return graphgain::guarded(-1.0, [&] {
    return static_cast<graphgain::Unrolled*>(unrolled)->issue(static_cast<CUstream>(stream),
                                                              pdl != 0, first, last);
  });
}

}  // extern "C"
