"""The values pass of ONNX Runtime, in this process: what it sees, and that the program does not notice."""

import collections

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from joulediff import _abi, _onnx_model, _onnx_operators, _onnx_passes, _onnx_twin  # noqa: E402
from onnx_passes import order_of, session, values_of  # noqa: E402
from onnx_programs import export, graph, network  # noqa: E402
from recorder import Library  # noqa: E402

RANDOM = np.random.default_rng(0)
W = RANDOM.standard_normal((8, 8)).astype(np.float32)
X = RANDOM.standard_normal((4, 8)).astype(np.float32)
CHAIN = graph([("MatMul", ["x", "w"], ["h"], {}), ("Tanh", ["h"], ["t"], {}), ("Reshape", ["t", "to"], ["r"], {}),
               ("ReduceSum", ["r", "axes"], ["y"], {"keepdims": 0})],
              {"x": ("float", ["n", 8])}, {"y": ("float", ["m"])},
              {"w": W, "to": np.array([-1, 16]), "axes": np.array([1])})


def rms(library, value):
    return library.tensors[value].fingerprint.rms


def root(array):
    return float(np.sqrt(np.mean(np.asarray(array, np.float64) ** 2)))


def test_every_node_is_seen_with_its_values():
    program = session(CHAIN)
    [want] = program.run(None, {"x": X})
    [got], library = values_of(lambda: program.run(None, {"x": X}))
    assert np.array_equal(want, got)
    [product] = library.named("onnx.MatMul")
    assert [library.shape(v) for v in product.inputs] == [(4, 8), (8, 8)]
    assert [library.tensors[v].role for v in product.inputs] == [_abi.INPUT, _abi.PARAMETER]
    assert rms(library, product.outputs[0]) == pytest.approx(root(X @ W), rel=1e-5)
    [tanh], [view], [total] = (library.named(f"onnx.{n}") for n in ("Tanh", "Reshape", "ReduceSum"))
    assert view.view and library.shape(view.outputs[0]) == (2, 16)
    assert library.tensors[view.outputs[0]].storage == library.tensors[tanh.outputs[0]].storage
    assert [library.tensors[v].role for v in view.inputs[1:]] == [_abi.CONSTANT]
    assert rms(library, total.outputs[0]) == pytest.approx(root(want), rel=1e-5)
    assert product.facts["module"] == "model.layers.0.MatMul" and total.facts["arguments"] == {
        "keepdims": 0, "noop_with_empty_axes": 0}
    assert product.facts["signature"].startswith("onnx.MatMul([4,8]:[8,1]:float32:cpu, [8,8]:[8,1]:float32:cpu:weight")
    frames = {f["id"]: f["frames"] for topic, f in library.facts if topic == "stack"}[product.facts["stack"]]
    assert frames[0][0].endswith("test_onnx.py") and "lambda" in frames[0][2]
    assert library.diagnostics() == []


def nodes_of(name, level, dynamo, tmp_path):
    path = tmp_path / f"{name}.onnx"
    export(name, path, dynamo)
    program, x = session(str(path), level), network(name)[1].numpy()
    [want] = program.run(None, {"x": x})
    [got], library = values_of(lambda: program.run(None, {"x": x}))
    assert np.array_equal(want, got) and library.diagnostics() == []
    # The last one makes what the program gets.
    assert library.tensors[library.operators[max(library.operators)].outputs[0]].fingerprint.max == want.max()
    return library


def test_what_is_fused_is_one_operator(tmp_path):
    library = nodes_of("transformer", "ORT_ENABLE_ALL", False, tmp_path)
    assert len(library.named("com_microsoft.BiasGelu")) == 2 and not library.named("onnx.Erf")
    assert len(library.named("com_microsoft.FusedMatMul")) == 2
    [first, _] = library.named("onnx.Softmax")
    assert first.facts["module"] == "h.0.Softmax"


def test_without_optimisation_each_node_is_one(tmp_path):
    library = nodes_of("transformer", "ORT_DISABLE_ALL", False, tmp_path)
    assert len(library.named("onnx.Erf")) == 2
    assert not any(o.name.startswith("com_microsoft") for o in library.operators.values())


def test_modules_are_those_of_torchs_exporter(tmp_path):
    library = nodes_of("convolutions", "ORT_ENABLE_BASIC", True, tmp_path)
    modules = [o.facts["module"] for o in library.named("onnx.Conv")]
    # The exporter has put convolution and normalisation together, and says of both where one of them was.
    assert [m.rpartition(".")[0].replace("norm1", "one") for m in modules][:2] == ["stem", "blocks.0.one"]


def test_images_in_blocks_are_told_in_their_order(tmp_path):
    blocked = nodes_of("convolutions", "ORT_ENABLE_ALL", False, tmp_path)
    plain = nodes_of("convolutions", "ORT_ENABLE_BASIC", False, tmp_path)
    ours = blocked.named("com_microsoft_nchwc.Conv")
    if not ours:
        pytest.skip("this processor has no such layout")
    # Folded and fused alike, but for the sum at the end of a block: the samples say where the elements are.
    known = [np.array(plain.tensors[v].values) for o in plain.operators.values() for v in o.outputs]
    for operator in ours:
        sample = np.array(blocked.tensors[operator.outputs[0]].values)
        assert any(k.shape == sample.shape and np.allclose(k, sample, atol=1e-4) for k in known), operator


def test_dynamic_shapes_are_those_of_each_run():
    program = session(CHAIN)
    for n in (2, 4, 6):
        x = X[:2].repeat(n // 2, 0)
        [want] = program.run(None, {"x": x})
        [got], library = values_of(lambda x=x: program.run(None, {"x": x}))
        assert np.array_equal(want, got)
        assert library.shape(library.named("onnx.Tanh")[0].outputs[0]) == (n, 8)


def test_what_one_session_gives_another_is_one_value():
    first, second = session(CHAIN), session(graph([("Exp", ["a"], ["b"], {}), ("Add", ["b", "c"], ["d"], {})],
                                                  {"a": ("float", [2]), "c": ("float", [2])}, {"d": ("float", [2])}))
    c = np.array([1.0, 2.0], np.float32)

    def step():
        [y] = first.run(None, {"x": X})
        [z] = second.run(None, {"a": y.copy(), "c": c})  # by its bits, wherever they lie
        return second.run(["d"], {"a": z, "c": c})

    _, library = values_of(step)
    [total], [exp, again] = library.named("onnx.ReduceSum"), library.named("onnx.Exp")
    one, two = library.named("onnx.Add")
    assert total.outputs == exp.inputs and one.outputs == again.inputs and one.inputs[1:] == two.inputs[1:]


def test_bindings_and_values_of_the_runtime():
    program = session(CHAIN)
    [want] = program.run(None, {"x": X})
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    got, library = values_of(lambda: program.run_with_ort_values(["y"], {"x": value})[0].numpy())
    assert np.array_equal(want, got) and len(library.operators) == 4

    def bound(how):
        binding = program.io_binding()
        how(binding)
        binding.bind_output("y")
        return lambda: (program.run_with_iobinding(binding), binding.copy_outputs_to_cpu()[0])[1]

    for how in (lambda b: b.bind_cpu_input("x", X), lambda b: b.bind_ortvalue_input("x", value),
                lambda b: b.bind_input(name="x", device_type="cpu", device_id=0, element_type=np.float32,
                                       shape=X.shape, buffer_ptr=X.ctypes.data)):
        got, library = values_of(bound(how))
        assert np.array_equal(want, got) and len(library.operators) == 4
        assert rms(library, library.named("onnx.MatMul")[0].inputs[0]) == pytest.approx(root(X), rel=1e-5)


def test_a_cache_that_is_written_over_is_read_before():
    program = session(graph([("Add", ["past", "one"], ["present"], {})], {"past": ("float", [3])},
                            {"present": ("float", [3])}, {"one": np.ones(3, np.float32)}))
    cache = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    binding = program.io_binding()
    binding.bind_ortvalue_input("past", cache)
    binding.bind_ortvalue_output("present", cache)

    def step():
        for _ in range(3):
            program.run_with_iobinding(binding)
        return cache.numpy().copy()

    got, library = values_of(step)
    assert got.tolist() == [3, 3, 3] and library.diagnostics() == []
    adds = library.named("onnx.Add")
    assert [rms(library, a.outputs[0]) for a in adds] == [1, 2, 3]
    assert [a.inputs[0] for a in adds[1:]] == [a.outputs[0] for a in adds[:-1]]


def test_branches_and_loops_are_one_operator_with_what_they_read():
    def body(kind, name):
        node = helper.make_node(kind, ["x"], [name])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, 1, ["n", 8])])

    loop = helper.make_graph(
        [helper.make_node("Add", ["carry", "z"], ["next"]), helper.make_node("Identity", ["more"], ["more_out"])],
        "loop",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("more", 9, []),
         helper.make_tensor_value_info("carry", 1, ["n", 8])],
        [helper.make_tensor_value_info("more_out", 9, []), helper.make_tensor_value_info("next", 1, ["n", 8])])
    model = graph([("If", ["p"], ["z"], {"then_branch": body("Sin", "s"), "else_branch": body("Cos", "c")}),
                   ("Loop", ["trips", "", "x"], ["y"], {"body": loop})],
                  {"p": ("bool", []), "x": ("float", ["n", 8]), "trips": ("int64", [])}, {"y": ("float", ["n", 8])})
    program = session(model)
    feed = {"p": np.array(True), "x": X, "trips": np.array(3)}
    [want] = program.run(None, feed)
    [got], library = values_of(lambda: program.run(None, feed))
    assert np.array_equal(want, got) and np.allclose(want, X + 3 * np.sin(X), atol=1e-5)
    [branch], [trips] = library.named("onnx.If"), library.named("onnx.Loop")
    assert len(branch.inputs) == 2 and rms(library, branch.outputs[0]) == pytest.approx(root(np.sin(X)), rel=1e-5)
    assert branch.outputs[0] in trips.inputs and rms(library, trips.outputs[0]) == pytest.approx(root(want), rel=1e-5)
    heard, operators = order_of(lambda: program.run(None, feed))
    assert heard.diagnostics() == [] and all(moves for _, _, moves in operators.values())


@pytest.mark.parametrize("kind", sorted(set(_onnx_model.TYPES) - {4, 12, 13, 14, 15, 18, 20}))
def test_each_type_of_element(kind):
    name, _, code = _onnx_model.TYPES[kind]
    model = graph([("Cast", ["x"], ["z"], {"to": kind})], {"x": ("float", [2, 3])},
                  {"z": (onnx.TensorProto.DataType.Name(kind), [2, 3])}, opset=19)
    x = np.array([[0, 1, 2], [3, 4, 6]], np.float32)
    program = session(model)
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x)
    _, library = values_of(lambda: program.run_with_ort_values(["z"], {"x": value}))
    made = library.tensors[library.operators[max(library.operators)].outputs[0]].fingerprint
    assert made.dtype == code and made.count == 6 and library.diagnostics() == []
    assert made.max == (1 if name == "bool" else 6)


def test_strings_sequences_empty_tensors_and_optional_inputs():
    model = graph([("Clip", ["x", "", "high"], ["c"], {}), ("SequenceConstruct", ["c", "c"], ["s"], {}),
                   ("SequenceLength", ["s"], ["n"], {}), ("Cast", ["c"], ["t"], {"to": 8}),
                   ("Slice", ["c", "zero", "zero"], ["e"], {}), ("Concat", ["e", "c"], ["y"], {"axis": 0})],
                  {"x": ("float", [4, 8])}, {"y": ("float", None), "n": ("int64", []), "t": ("string", None),
                                             "s": helper.make_tensor_sequence_value_info("s", 1, None)},
                  {"high": np.float32(0.5), "zero": np.array([0])})
    program = session(model, "ORT_DISABLE_ALL")
    want = program.run(None, {"x": X})
    got, library = values_of(lambda: program.run(None, {"x": X}))
    assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))
    assert library.diagnostics() == ["record.unreadable_tensors"]
    [clip], [empty], [both] = (library.named(f"onnx.{n}") for n in ("Clip", "Slice", "Concat"))
    assert len(clip.inputs) == 2 and library.shape(empty.outputs[0]) == (0, 8)
    assert empty.outputs[0] in both.inputs and rms(library, clip.outputs[0]) == pytest.approx(
        root(np.minimum(X, 0.5)), rel=1e-5)
    names = collections.Counter(o.name for o in library.operators.values())
    assert names["onnx.SequenceConstruct"] == names["onnx.Cast"] == 1
    heard, _ = order_of(lambda: program.run(None, {"x": X}))
    assert set(heard.diagnostics()) <= {"record.not_replayed"}


def test_weights_as_any_field_of_a_model():
    rows = {"a": helper.make_tensor("a", 1, [3], [1.0, 2.0, 3.0]), "b": helper.make_tensor("b", 7, [3], [-1, 2, 3]),
            "c": helper.make_tensor("c", 10, [3], [1.0, -2.0, 4.0]), "d": helper.make_tensor("d", 11, [1], [0.5]),
            "e": helper.make_tensor("e", 6, [2], [-7, 9]), "f": helper.make_tensor("f", 2, [2], [255, 1]),
            "g": helper.make_tensor("g", 16, [2], [1.5, -2.0])}
    body = helper.make_graph([], "g", [], [], list(rows.values()))
    found = _onnx_model.read(helper.make_model(body).SerializeToString()).initializers
    for name, proto in rows.items():
        array = found[name].array("")
        want = onnx.numpy_helper.to_array(proto)
        assert array.shape == want.shape, name
        assert np.array_equal(array.view(np.uint16) if name == "g" else array,
                              want.view(np.uint16) if name == "g" else want), name


@pytest.mark.parametrize("form", ["external", "ort"])
def test_models_in_other_forms(tmp_path, form):
    path = tmp_path / f"model.{form}"
    if form == "external":
        onnx.save_model(onnx.load_from_string(CHAIN), str(path), save_as_external_data=True, location="data",
                        size_threshold=128)
    else:
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(path)
        options.add_session_config_entry("session.save_model_format", "ORT")
        onnxruntime.InferenceSession(CHAIN, options, providers=["CPUExecutionProvider"])
    program = session(str(path))
    [got], library = values_of(lambda: program.run(None, {"x": X}))
    assert np.allclose(got, np.tanh(X @ W).reshape(-1, 16).sum(-1), atol=1e-5)
    names = [o.name.removeprefix("onnx.") for o in library.operators.values()]
    assert names == ["MatMul", "Tanh", "Reshape", "ReduceSum"] and library.diagnostics() == []
    assert rms(library, library.operators[0].inputs[1]) == pytest.approx(root(W), rel=1e-5)


def test_options_that_know_a_library_of_operators_are_left_as_they_were(monkeypatch):
    """Of the session's own copy of its options such a library is not part: those that the program made are used."""
    options, real = onnxruntime.SessionOptions(), _onnx_twin.Twin._options
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    program = onnxruntime.InferenceSession(CHAIN, options, providers=["CPUExecutionProvider"])

    def no_copy(twin, *args, **kwargs):
        if not twin._initial:
            raise RuntimeError("no such operator")
        return real(twin, *args, **kwargs)

    monkeypatch.setattr(_onnx_twin.Twin, "_options", no_copy)
    _, library = values_of(lambda: program.run(None, {"x": X}))
    assert len(library.operators) == 4 and library.diagnostics() == []
    assert options.optimized_model_filepath == "" and options.execution_mode.name == "ORT_SEQUENTIAL"
    assert options.graph_optimization_level.name == "ORT_ENABLE_BASIC" and options.log_severity_level == -1


def test_a_mistake_of_ours_ends_the_recording_alone(monkeypatch):
    def wrong(*_):
        raise KeyError("ours")

    monkeypatch.setattr(_onnx_operators.Values, "operators", wrong)
    program, told = session(CHAIN), []
    values = _onnx_passes.Values(_abi.Recorder(Library()), told.append)
    values.begin()
    [got] = program.run(None, {"x": X})
    values.end()
    assert np.array_equal(got, session(CHAIN).run(None, {"x": X})[0]) and [str(e) for e in told] == ["'ours'"]


def test_random_numbers_are_told():
    program = session(graph([("RandomNormalLike", ["x"], ["r"], {}), ("Add", ["x", "r"], ["y"], {})],
                            {"x": ("float", [4, 8])}, {"y": ("float", [4, 8])}))
    program.run(None, {"x": X})
    [got], library = values_of(lambda: program.run(None, {"x": X}))
    assert library.diagnostics() == ["record.twin_differs"] and not np.array_equal(got, X)


def test_a_session_that_cannot_be_looked_into_is_one_operator(monkeypatch):
    program = session(CHAIN)
    [want] = program.run(None, {"x": X})
    program._model_bytes = None
    [got], library = values_of(lambda: program.run(None, {"x": X}))
    assert np.array_equal(want, got) and library.diagnostics() == ["record.unreadable_session"]
    [only] = library.operators.values()
    assert only.name == "onnxruntime.InferenceSession.run" and rms(library, only.outputs[0]) == pytest.approx(
        root(want), rel=1e-5)
    heard, operators = order_of(lambda: program.run(None, {"x": X}))
    assert [b[1:] for b in heard.brackets] == [(0, "onnxruntime")] and not operators[0][2]


def test_the_order_pass_times_each_node_once():
    program = session(CHAIN)
    library, operators = order_of(lambda: (program.run(None, {"x": X}), program.run(None, {"x": X})))
    assert [(t[1], t[2]) for t in library.took] == [(i, operators[i][0]) for i in range(8)]
    assert [t[4] > t[3] for t in library.took] == [True, True, False, True] * 2  # a view takes no time
    assert [moves for _, _, moves in operators.values()] == [True, True, False, True] * 2
    assert operators[0][1] == operators[4][1]


def test_a_mistake_of_the_program_is_its_own():
    program = session(CHAIN)

    def step():
        with pytest.raises(Exception, match="x"):
            program.run(None, {"x": X[:, :3]})
        with pytest.raises(ValueError, match="missing"):
            program.run(None, {})
        return program.run(None, {"x": X})

    [got], library = values_of(step)
    assert np.array_equal(got, program.run(None, {"x": X})[0])
    assert len(library.operators) == 4 and set(library.diagnostics()) == {"record.unreadable_session"}
