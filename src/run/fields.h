// The fields of every record of a run, named once: the file's tables and the JSON are both made
// from this list, so that neither can forget one. A visitor is called with each field's name and
// value.
#pragma once

#include <concepts>
#include <type_traits>

#include "run/model.h"

namespace joulediff::run {

// T or const T.
template <class X, class T>
concept Is = std::same_as<std::remove_const_t<X>, T>;

// A field that the format has only had since `version`.
template <class V, class T>
void since(std::uint32_t version, V& visit, const char* name, T& value) {
  if constexpr (requires { visit.version(); }) {
    if (visit.version() < version) return;
  }
  visit(name, value);
}

template <class V, Is<Manifest> X>
void fields(V& visit, X& x) {  // facts apart
  visit("label", x.label);
  visit("command", x.command);
  visit("device", x.device);
  visit("device_uuid", x.device_uuid);
  visit("framework", x.framework);
  visit("work_unit", x.work.unit);
  visit("work_per_step", x.work.per_step);
  visit("pair", x.pair);
  visit("side", x.side);
}

template <class V, Is<Setting> X>
void fields(V& visit, X& x) {
  visit("key", x.key);
  visit("value", x.value);
}

template <class V, Is<Frame> X>
void fields(V& visit, X& x) {
  visit("file", x.file);
  visit("line", x.line);
  visit("function", x.function);
}

template <class V, Is<StackNode> X>
void fields(V& visit, X& x) {
  visit("caller", x.caller);
  visit("frame", x.frame);
}

template <class V, Is<Signature> X>
void fields(V& visit, X& x) {
  visit("text", x.text);
}

template <class V, Is<value::Fingerprint> X>
void fields(V& visit, X& x) {
  visit("dtype", x.dtype);
  visit("count", x.count);
  visit("nan", x.nan);
  visit("positive_infinity", x.positive_infinity);
  visit("negative_infinity", x.negative_infinity);
  visit("mean", x.mean);
  visit("mean_abs", x.mean_abs);
  visit("rms", x.rms);
  visit("l4", x.l4);
  visit("m3", x.m3);
  visit("min", x.min);
  visit("max", x.max);
  visit("distinct", x.distinct);
  visit("own", x.own);
  visit("bf16", x.bf16);
  visit("fp16", x.fp16);
}

template <class V, Is<Tensor> X>
void fields(V& visit, X& x) {
  visit("storage", x.storage);
  visit("version", x.version);
  visit("offset", x.offset);
  visit("role", x.role);
  visit("shape", x.shape);
  visit("stride", x.stride);
  fields(visit, x.fingerprint);
  visit("sample", x.sample);
}

template <class V, Is<Operator> X>
void fields(V& visit, X& x) {
  visit("name", x.name);
  visit("inputs", x.inputs);
  visit("outputs", x.outputs);
  visit("signature", x.signature);
  visit("stack", x.stack);
  visit("forward", x.forward);
  visit("phase", x.phase);
  visit("view", x.view);
  visit("module", x.module);
  visit("arguments", x.arguments);
}

template <class V, Is<Kernel> X>
void fields(V& visit, X& x) {
  visit("name", x.name);
  visit("grid", x.grid);
  visit("block", x.block);
  visit("kind", x.kind);
}

template <class V, Is<Device> X>
void fields(V& visit, X& x) {
  visit("uuid", x.uuid);
  visit("name", x.name);
}

template <class V, Is<Inputs> X>
void fields(V& visit, X& x) {
  visit("text", x.text);
}

template <class V, Is<Step> X>
void fields(V& visit, X& x) {
  visit("pass", x.pass);
  visit("index", x.index);
  visit("begin", x.begin);
  visit("end", x.end);
  since(2, visit, "inputs", x.inputs);
}

template <class V, Is<Replay> X>
void fields(V& visit, X& x) {
  visit("kind", x.kind);
  visit("signature", x.signature);
  visit("begin", x.begin);
  visit("end", x.end);
  visit("count", x.count);
}

template <class V, Is<KernelSeries> X>
void fields(V& visit, X& x) {
  visit("kernel", x.kernel);
  visit("start", x.start);
  visit("duration", x.duration);
  visit("stream", x.stream);
  visit("op", x.op);
  visit("step", x.step);
  visit("device", x.device);
  visit("stack", x.stack);
}

template <class V, Is<Synchronisations> X>
void fields(V& visit, X& x) {
  visit("kind", x.kind);
  visit("start", x.start);
  visit("duration", x.duration);
  visit("stream", x.stream);
}

template <class V, Is<OperatorTimes> X>
void fields(V& visit, X& x) {
  visit("op", x.op);
  visit("step", x.step);
  visit("begin", x.begin);
  visit("end", x.end);
}

template <class V, Is<Series> X>
void fields(V& visit, X& x) {
  visit("source", x.source);
  visit("channel", x.channel);
  visit("time", x.time);
  visit("value", x.value);
  visit("uncertainty", x.uncertainty);
}

template <class V, Is<Block> X>
void fields(V& visit, X& x) {  // steps, replays and all series apart
  visit("order", x.order);
  visit("pid", x.pid);
  visit("begin", x.begin);
  visit("end", x.end);
  visit("exit_status", x.exit_status);
  visit("dropped_kernels", x.dropped_kernels);
  since(2, visit, "rank", x.rank);
  since(2, visit, "host", x.host);
}

template <class V, Is<Diagnostic> X>
void fields(V& visit, X& x) {
  visit("severity", x.severity);
  visit("rule", x.rule);
  visit("message", x.message);
  visit("count", x.count);
  since(3, visit, "remedy", x.remedy);
}

}  // namespace joulediff::run
